module @f0 {
func.func public @main(%a0: tensor<5xf32>) -> (tensor<5xf32>) {
%0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
%1 = stablehlo.reduce(%a0 init: %0) applies stablehlo.maximum across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
%2 = stablehlo.reshape %1 : (tensor<f32>) -> tensor<1xf32>
%3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<1xf32>) -> tensor<5xf32>
%4 = stablehlo.subtract %a0, %3 : tensor<5xf32>
%5 = stablehlo.exponential %4 : tensor<5xf32>
%6 = stablehlo.constant dense<0.0> : tensor<f32>
%7 = stablehlo.reduce(%5 init: %6) applies stablehlo.add across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
%8 = stablehlo.reshape %7 : (tensor<f32>) -> tensor<1xf32>
%9 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<1xf32>) -> tensor<5xf32>
%10 = stablehlo.divide %5, %9 : tensor<5xf32>
return %10 : tensor<5xf32>
}
}
