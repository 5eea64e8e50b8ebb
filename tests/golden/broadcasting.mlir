module @f0 {
func.func public @main(%a0: tensor<2x1xf32>, %a1: tensor<3xi32>) -> (tensor<2x3xf32>) {
%0 = stablehlo.convert %a1 : (tensor<3xi32>) -> tensor<3xf32>
%1 = stablehlo.broadcast_in_dim %a0, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
%2 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
%3 = stablehlo.add %1, %2 : tensor<2x3xf32>
return %3 : tensor<2x3xf32>
}
}
