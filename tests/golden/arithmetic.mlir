module @f0 {
func.func public @main(%a0: tensor<3xf32>, %a1: tensor<3xf32>) -> (tensor<3xf32>) {
%0 = stablehlo.constant dense<2.0> : tensor<3xf32>
%1 = stablehlo.multiply %0, %a1 : tensor<3xf32>
%2 = stablehlo.add %a0, %1 : tensor<3xf32>
%3 = stablehlo.multiply %a0, %a0 : tensor<3xf32>
%4 = stablehlo.constant dense<1.0> : tensor<3xf32>
%5 = stablehlo.subtract %4, %3 : tensor<3xf32>
%6 = stablehlo.divide %2, %5 : tensor<3xf32>
%7 = stablehlo.constant dense<0.0> : tensor<3xf32>
%8 = stablehlo.maximum %a0, %7 : tensor<3xf32>
%9 = stablehlo.subtract %6, %8 : tensor<3xf32>
return %9 : tensor<3xf32>
}
}
