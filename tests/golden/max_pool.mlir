module @f0 {
func.func public @main(%a0: tensor<1x4x4x1xf32>) -> (tensor<1x2x2x1xf32>) {
%0 = stablehlo.slice %a0 [0:1:1, 0:4:1, 0:3:2, 0:1:1] : (tensor<1x4x4x1xf32>) -> tensor<1x4x2x1xf32>
%1 = stablehlo.slice %a0 [0:1:1, 0:4:1, 1:4:2, 0:1:1] : (tensor<1x4x4x1xf32>) -> tensor<1x4x2x1xf32>
%2 = stablehlo.maximum %0, %1 : tensor<1x4x2x1xf32>
%3 = stablehlo.slice %2 [0:1:1, 0:3:2, 0:2:1, 0:1:1] : (tensor<1x4x2x1xf32>) -> tensor<1x2x2x1xf32>
%4 = stablehlo.slice %2 [0:1:1, 1:4:2, 0:2:1, 0:1:1] : (tensor<1x4x2x1xf32>) -> tensor<1x2x2x1xf32>
%5 = stablehlo.maximum %3, %4 : tensor<1x2x2x1xf32>
return %5 : tensor<1x2x2x1xf32>
}
}
