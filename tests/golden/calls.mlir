module @f0 {
func.func public @main(%a0: tensor<3xf32>) -> (tensor<3xf32>) {
%0 = func.call @f1(%a0) : (tensor<3xf32>) -> (tensor<3xf32>)
%1 = func.call @f1(%0) : (tensor<3xf32>) -> (tensor<3xf32>)
return %1 : tensor<3xf32>
}
func.func private @f1(%a0: tensor<3xf32>) -> (tensor<3xf32>) {
%0 = stablehlo.sine %a0 : tensor<3xf32>
%1 = stablehlo.constant dense<1.0> : tensor<3xf32>
%2 = stablehlo.add %0, %1 : tensor<3xf32>
return %2 : tensor<3xf32>
}
}
