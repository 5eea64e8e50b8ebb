module @f0 {
func.func public @main(%a0: tensor<3xf32>, %a1: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
%0 = stablehlo.compare GT, %a0, %a1, FLOAT : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
%1 = stablehlo.select %0, %a0, %a1 : tensor<3xi1>, tensor<3xf32>
%2 = stablehlo.constant dense<0.0> : tensor<f32>
%3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<3xf32>
%4 = stablehlo.maximum %a0, %3 : tensor<3xf32>
%5 = stablehlo.constant dense<1.0> : tensor<f32>
%6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<3xf32>
%7 = stablehlo.minimum %4, %6 : tensor<3xf32>
return %1, %7 : tensor<3xf32>, tensor<3xf32>
}
}
