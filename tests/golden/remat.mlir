module @f0 {
func.func public @main(%a0: tensor<3xf32>) -> (tensor<3xf32>) {
%0 = stablehlo.constant dense<1.0> : tensor<f32>
%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3xf32>
%2:2 = stablehlo.optimization_barrier %a0, %1 : tensor<3xf32>, tensor<3xf32>
%3 = stablehlo.sine %2#0 : tensor<3xf32>
%4 = stablehlo.cosine %2#0 : tensor<3xf32>
%5 = stablehlo.cosine %3 : tensor<3xf32>
%6 = stablehlo.multiply %2#1, %5 : tensor<3xf32>
%7 = stablehlo.multiply %6, %4 : tensor<3xf32>
return %7 : tensor<3xf32>
}
}
