module @f0 {
func.func public @main(%a0: tensor<3xf32>) -> (tensor<3xf32>) {
%0 = stablehlo.constant dense<0.0> : tensor<f32>
%1 = stablehlo.reduce(%a0 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
%2 = stablehlo.constant dense<0.0> : tensor<f32>
%3 = stablehlo.compare GT, %1, %2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
%4 = stablehlo.convert %3 : (tensor<i1>) -> tensor<i32>
%8 = "stablehlo.case"(%4) ({
%5 = stablehlo.negate %a0 : tensor<3xf32>
stablehlo.return %5 : tensor<3xf32>
}, {
%6 = stablehlo.constant dense<2.0> : tensor<3xf32>
%7 = stablehlo.multiply %a0, %6 : tensor<3xf32>
stablehlo.return %7 : tensor<3xf32>
}) : (tensor<i32>) -> (tensor<3xf32>)
return %8 : tensor<3xf32>
}
}
