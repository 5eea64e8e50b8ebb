module @f0 {
func.func public @main(%a0: tensor<5x3xf32>, %a1: tensor<3xf32>) -> (tensor<5x3xf32>) {
%0 = stablehlo.dot_general %a1, %a0, contracting_dims = [0] x [1] : (tensor<3xf32>, tensor<5x3xf32>) -> tensor<5xf32>
%1 = stablehlo.constant dense<2.0> : tensor<5xf32>
%2 = stablehlo.multiply %0, %1 : tensor<5xf32>
%3 = stablehlo.constant dense<1.0> : tensor<5xf32>
%4 = stablehlo.multiply %3, %2 : tensor<5xf32>
%5 = stablehlo.dot_general %4, %a0, batching_dims = [0] x [0], contracting_dims = [] x [] : (tensor<5xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
return %5 : tensor<5x3xf32>
}
}
