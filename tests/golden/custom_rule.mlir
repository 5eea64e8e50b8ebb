module @f0 {
func.func public @main(%a0: tensor<3xf32>) -> (tensor<3xf32>) {
%0 = stablehlo.constant dense<2.0> : tensor<f32>
%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3xf32>
%2 = stablehlo.multiply %a0, %1 : tensor<3xf32>
%3 = stablehlo.constant dense<1.0> : tensor<f32>
%4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<3xf32>
%5 = stablehlo.multiply %4, %2 : tensor<3xf32>
%6 = stablehlo.constant dense<-1.0> : tensor<f32>
%7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<f32>) -> tensor<3xf32>
%8 = stablehlo.maximum %5, %7 : tensor<3xf32>
%9 = stablehlo.constant dense<1.0> : tensor<f32>
%10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f32>) -> tensor<3xf32>
%11 = stablehlo.minimum %8, %10 : tensor<3xf32>
return %11 : tensor<3xf32>
}
}
