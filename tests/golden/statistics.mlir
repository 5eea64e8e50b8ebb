module @f0 {
func.func public @main(%a0: tensor<3x4xf32>) -> (tensor<4xf32>, tensor<f32>, tensor<3x1xf32>) {
%0 = stablehlo.constant dense<0.0> : tensor<f32>
%1 = stablehlo.reduce(%a0 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<3x4xf32>, tensor<f32>) -> tensor<4xf32>
%2 = stablehlo.constant dense<3.0> : tensor<f32>
%3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<4xf32>
%4 = stablehlo.divide %1, %3 : tensor<4xf32>
%5 = stablehlo.constant dense<0.0> : tensor<f32>
%6 = stablehlo.reduce(%a0 init: %5) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<f32>
%7 = stablehlo.reshape %6 : (tensor<f32>) -> tensor<1x1xf32>
%8 = stablehlo.constant dense<12.0> : tensor<f32>
%9 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
%10 = stablehlo.divide %7, %9 : tensor<1x1xf32>
%11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<3x4xf32>
%12 = stablehlo.subtract %a0, %11 : tensor<3x4xf32>
%13 = stablehlo.multiply %12, %12 : tensor<3x4xf32>
%14 = stablehlo.constant dense<0.0> : tensor<f32>
%15 = stablehlo.reduce(%13 init: %14) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<f32>
%16 = stablehlo.constant dense<12.0> : tensor<f32>
%17 = stablehlo.divide %15, %16 : tensor<f32>
%18 = stablehlo.constant dense<0xFF800000> : tensor<f32>
%19 = stablehlo.reduce(%a0 init: %18) applies stablehlo.maximum across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
%20 = stablehlo.reshape %19 : (tensor<3xf32>) -> tensor<3x1xf32>
return %4, %17, %20 : tensor<4xf32>, tensor<f32>, tensor<3x1xf32>
}
}
