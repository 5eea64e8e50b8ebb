module @f0 {
func.func public @main(%a0: tensor<3xf32>, %a1: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
%0 = stablehlo.compare GT, %a0, %a1, FLOAT : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
%1 = stablehlo.select %0, %a0, %a1 : tensor<3xi1>, tensor<3xf32>
%2 = stablehlo.constant dense<0.0> : tensor<3xf32>
%3 = stablehlo.maximum %a0, %2 : tensor<3xf32>
%4 = stablehlo.constant dense<1.0> : tensor<3xf32>
%5 = stablehlo.minimum %3, %4 : tensor<3xf32>
return %1, %5 : tensor<3xf32>, tensor<3xf32>
}
}
