module @f0 {
func.func public @main(%a0: tensor<3xf32>) -> (tensor<3xf32>) {
%0 = stablehlo.constant dense<1.0> : tensor<3xf32>
%1:2 = stablehlo.optimization_barrier %a0, %0 : tensor<3xf32>, tensor<3xf32>
%2 = stablehlo.sine %1#0 : tensor<3xf32>
%3 = stablehlo.cosine %1#0 : tensor<3xf32>
%4 = stablehlo.cosine %2 : tensor<3xf32>
%5 = stablehlo.multiply %1#1, %4 : tensor<3xf32>
%6 = stablehlo.multiply %5, %3 : tensor<3xf32>
return %6 : tensor<3xf32>
}
}
