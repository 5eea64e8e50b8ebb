module @f0 {
func.func public @main(%a0: tensor<f32>) -> (tensor<f32>) {
%6 = "stablehlo.while"(%a0) ({
^bb0(%b0: tensor<f32>):
%1 = stablehlo.constant dense<10.0> : tensor<f32>
%2 = stablehlo.compare LT, %b0, %1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
stablehlo.return %2 : tensor<i1>
}, {
^bb0(%b3: tensor<f32>):
%4 = stablehlo.constant dense<2.0> : tensor<f32>
%5 = stablehlo.multiply %b3, %4 : tensor<f32>
stablehlo.return %5 : tensor<f32>
}) : (tensor<f32>) -> (tensor<f32>)
return %6 : tensor<f32>
}
}
