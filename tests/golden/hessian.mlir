module @f0 {
func.func public @main(%a0: tensor<3x3xf32>, %a1: tensor<1xf32>, %a2: tensor<3xf32>) -> (tensor<3x3xf32>) {
%0 = stablehlo.cosine %a2 : tensor<3xf32>
%1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<3xf32>) -> tensor<3x3xf32>
%2 = stablehlo.multiply %a0, %1 : tensor<3x3xf32>
%3 = stablehlo.cosine %a2 : tensor<3xf32>
%4 = stablehlo.sine %a2 : tensor<3xf32>
%5 = stablehlo.negate %4 : tensor<3xf32>
%6 = stablehlo.broadcast_in_dim %5, dims = [1] : (tensor<3xf32>) -> tensor<3x3xf32>
%7 = stablehlo.multiply %a0, %6 : tensor<3x3xf32>
%8 = stablehlo.broadcast_in_dim %a1, dims = [0] : (tensor<1xf32>) -> tensor<1x3xf32>
%9 = stablehlo.broadcast_in_dim %2, dims = [0, 2] : (tensor<3x3xf32>) -> tensor<3x1x3xf32>
%10 = stablehlo.broadcast_in_dim %8, dims = [1, 2] : (tensor<1x3xf32>) -> tensor<3x1x3xf32>
%11 = stablehlo.multiply %9, %10 : tensor<3x1x3xf32>
%12 = stablehlo.broadcast_in_dim %a2, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>
%13 = stablehlo.broadcast_in_dim %a0, dims = [0, 2] : (tensor<3x3xf32>) -> tensor<3x1x3xf32>
%14 = stablehlo.multiply %8, %12 : tensor<1x3xf32>
%15 = stablehlo.broadcast_in_dim %8, dims = [1, 2] : (tensor<1x3xf32>) -> tensor<3x1x3xf32>
%16 = stablehlo.multiply %13, %15 : tensor<3x1x3xf32>
%17 = stablehlo.broadcast_in_dim %3, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>
%18 = stablehlo.broadcast_in_dim %7, dims = [0, 2] : (tensor<3x3xf32>) -> tensor<3x1x3xf32>
%19 = stablehlo.broadcast_in_dim %17, dims = [1, 2] : (tensor<1x3xf32>) -> tensor<3x1x3xf32>
%20 = stablehlo.multiply %16, %19 : tensor<3x1x3xf32>
%21 = stablehlo.broadcast_in_dim %14, dims = [1, 2] : (tensor<1x3xf32>) -> tensor<3x1x3xf32>
%22 = stablehlo.multiply %18, %21 : tensor<3x1x3xf32>
%23 = stablehlo.add %20, %22 : tensor<3x1x3xf32>
%24 = stablehlo.add %11, %23 : tensor<3x1x3xf32>
%25 = stablehlo.reshape %24 : (tensor<3x1x3xf32>) -> tensor<3x3xf32>
%26 = stablehlo.transpose %25, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
return %26 : tensor<3x3xf32>
}
}
