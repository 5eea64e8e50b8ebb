module @f0 {
func.func public @main(%a0: tensor<3xf32>) -> (tensor<3xf32>) {
%0 = stablehlo.constant dense<2.0> : tensor<3xf32>
%1 = stablehlo.multiply %a0, %0 : tensor<3xf32>
%2 = stablehlo.constant dense<1.0> : tensor<3xf32>
%3 = stablehlo.multiply %2, %1 : tensor<3xf32>
%4 = stablehlo.constant dense<-1.0> : tensor<3xf32>
%5 = stablehlo.maximum %3, %4 : tensor<3xf32>
%6 = stablehlo.constant dense<1.0> : tensor<3xf32>
%7 = stablehlo.minimum %5, %6 : tensor<3xf32>
return %7 : tensor<3xf32>
}
}
