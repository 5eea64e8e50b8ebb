module @f0 {
func.func public @main(%a0: tensor<i32>, %a1: tensor<f32>) -> (tensor<f32>) {
%0 = stablehlo.constant dense<0> : tensor<i32>
%1 = stablehlo.maximum %a0, %0 : tensor<i32>
%2 = stablehlo.constant dense<2> : tensor<i32>
%3 = stablehlo.minimum %1, %2 : tensor<i32>
%6 = "stablehlo.case"(%3) ({

stablehlo.return %a1 : tensor<f32>
}, {
%4 = stablehlo.sine %a1 : tensor<f32>
stablehlo.return %4 : tensor<f32>
}, {
%5 = stablehlo.cosine %a1 : tensor<f32>
stablehlo.return %5 : tensor<f32>
}) : (tensor<i32>) -> (tensor<f32>)
return %6 : tensor<f32>
}
}
