module @f0 {
func.func public @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
%0 = stablehlo.abs %a0 : tensor<4xf32>
%1 = stablehlo.negate %0 : tensor<4xf32>
%2 = stablehlo.exponential %1 : tensor<4xf32>
%3 = stablehlo.tanh %2 : tensor<4xf32>
%4 = stablehlo.log_plus_one %a0 : tensor<4xf32>
%5 = stablehlo.sine %a0 : tensor<4xf32>
%6 = stablehlo.multiply %4, %5 : tensor<4xf32>
%7 = stablehlo.add %3, %6 : tensor<4xf32>
return %7 : tensor<4xf32>
}
}
