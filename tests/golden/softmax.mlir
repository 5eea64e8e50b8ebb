module @f0 {
func.func public @main(%a0: tensor<5xf32>) -> (tensor<5xf32>) {
%0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
%1 = stablehlo.reduce(%a0 init: %0) applies stablehlo.maximum across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
%2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
%3 = stablehlo.maximum %1, %2 : tensor<f32>
%4 = stablehlo.reshape %3 : (tensor<f32>) -> tensor<1xf32>
%5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<1xf32>) -> tensor<5xf32>
%6 = stablehlo.subtract %a0, %5 : tensor<5xf32>
%7 = stablehlo.exponential %6 : tensor<5xf32>
%8 = stablehlo.constant dense<0.0> : tensor<f32>
%9 = stablehlo.reduce(%7 init: %8) applies stablehlo.add across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
%10 = stablehlo.reshape %9 : (tensor<f32>) -> tensor<1xf32>
%11 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<1xf32>) -> tensor<5xf32>
%12 = stablehlo.divide %7, %11 : tensor<5xf32>
return %12 : tensor<5xf32>
}
}
