module @f0 {
func.func public @main(%a0: tensor<f32>, %a1: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
%0 = stablehlo.sine %a0 : tensor<f32>
%1 = stablehlo.cosine %a0 : tensor<f32>
%2 = stablehlo.multiply %a1, %1 : tensor<f32>
%3 = stablehlo.exponential %0 : tensor<f32>
%4 = stablehlo.multiply %2, %3 : tensor<f32>
return %3, %4 : tensor<f32>, tensor<f32>
}
}
