module @f0 {
func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
%0 = stablehlo.constant dense<0.0> : tensor<f32>
%1 = stablehlo.reduce(%a0 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
%2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
%3 = stablehlo.divide %a0, %2 : tensor<4xf32>
return %3 : tensor<4xf32>
}
}
