module @f0 {
func.func public @main(%a0: tensor<3x4xf32>) -> (tensor<4xf32>, tensor<f32>, tensor<3x1xf32>) {
%0 = stablehlo.constant dense<0.0> : tensor<f32>
%1 = stablehlo.reduce(%a0 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<3x4xf32>, tensor<f32>) -> tensor<4xf32>
%2 = stablehlo.constant dense<3.0> : tensor<4xf32>
%3 = stablehlo.divide %1, %2 : tensor<4xf32>
%4 = stablehlo.constant dense<0.0> : tensor<f32>
%5 = stablehlo.reduce(%a0 init: %4) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<f32>
%6 = stablehlo.reshape %5 : (tensor<f32>) -> tensor<1x1xf32>
%7 = stablehlo.constant dense<12.0> : tensor<1x1xf32>
%8 = stablehlo.divide %6, %7 : tensor<1x1xf32>
%9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<3x4xf32>
%10 = stablehlo.subtract %a0, %9 : tensor<3x4xf32>
%11 = stablehlo.multiply %10, %10 : tensor<3x4xf32>
%12 = stablehlo.constant dense<0.0> : tensor<f32>
%13 = stablehlo.reduce(%11 init: %12) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<f32>
%14 = stablehlo.constant dense<12.0> : tensor<f32>
%15 = stablehlo.divide %13, %14 : tensor<f32>
%16 = stablehlo.constant dense<0xFF800000> : tensor<f32>
%17 = stablehlo.reduce(%a0 init: %16) applies stablehlo.maximum across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
%18 = stablehlo.reshape %17 : (tensor<3xf32>) -> tensor<3x1xf32>
return %3, %15, %18 : tensor<4xf32>, tensor<f32>, tensor<3x1xf32>
}
}
