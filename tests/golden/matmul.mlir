module @f0 {
func.func public @main(%a0: tensor<2x3xf32>, %a1: tensor<3x4xf32>) -> (tensor<2x4xf32>) {
%0 = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
return %0 : tensor<2x4xf32>
}
}
