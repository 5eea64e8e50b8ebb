module @f0 {
func.func public @main(%a0: tensor<5x3xf32>, %a1: tensor<3xf32>) -> (tensor<5x3xf32>) {
%0 = stablehlo.dot_general %a1, %a0, contracting_dims = [0] x [1] : (tensor<3xf32>, tensor<5x3xf32>) -> tensor<5xf32>
%1 = stablehlo.constant dense<2.0> : tensor<f32>
%2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<5xf32>
%3 = stablehlo.multiply %0, %2 : tensor<5xf32>
%4 = stablehlo.constant dense<1.0> : tensor<f32>
%5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> tensor<5xf32>
%6 = stablehlo.multiply %5, %3 : tensor<5xf32>
%7 = stablehlo.dot_general %6, %a0, batching_dims = [0] x [0], contracting_dims = [] x [] : (tensor<5xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
return %7 : tensor<5x3xf32>
}
}
