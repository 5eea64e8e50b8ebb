module @f0 {
func.func public @main(%a0: tensor<3xf32>) -> (tensor<3x3xf32>) {
%0 = stablehlo.cosine %a0 : tensor<3xf32>
%1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<3xf32>) -> tensor<3x3xf32>
%2 = stablehlo.constant dense<[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]> : tensor<3x3xf32>
%3 = stablehlo.multiply %2, %1 : tensor<3x3xf32>
%4 = stablehlo.cosine %a0 : tensor<3xf32>
%5 = stablehlo.sine %a0 : tensor<3xf32>
%6 = stablehlo.negate %5 : tensor<3xf32>
%7 = stablehlo.broadcast_in_dim %6, dims = [1] : (tensor<3xf32>) -> tensor<3x3xf32>
%8 = stablehlo.constant dense<[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]> : tensor<3x3xf32>
%9 = stablehlo.multiply %8, %7 : tensor<3x3xf32>
%10 = stablehlo.constant dense<[1.0]> : tensor<1xf32>
%11 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<1xf32>) -> tensor<1x3xf32>
%12 = stablehlo.broadcast_in_dim %3, dims = [0, 2] : (tensor<3x3xf32>) -> tensor<3x1x3xf32>
%13 = stablehlo.broadcast_in_dim %11, dims = [1, 2] : (tensor<1x3xf32>) -> tensor<3x1x3xf32>
%14 = stablehlo.multiply %12, %13 : tensor<3x1x3xf32>
%15 = stablehlo.broadcast_in_dim %a0, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>
%16 = stablehlo.constant dense<[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]> : tensor<3x3xf32>
%17 = stablehlo.broadcast_in_dim %16, dims = [0, 2] : (tensor<3x3xf32>) -> tensor<3x1x3xf32>
%18 = stablehlo.multiply %11, %15 : tensor<1x3xf32>
%19 = stablehlo.broadcast_in_dim %11, dims = [1, 2] : (tensor<1x3xf32>) -> tensor<3x1x3xf32>
%20 = stablehlo.multiply %17, %19 : tensor<3x1x3xf32>
%21 = stablehlo.broadcast_in_dim %4, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>
%22 = stablehlo.broadcast_in_dim %9, dims = [0, 2] : (tensor<3x3xf32>) -> tensor<3x1x3xf32>
%23 = stablehlo.broadcast_in_dim %21, dims = [1, 2] : (tensor<1x3xf32>) -> tensor<3x1x3xf32>
%24 = stablehlo.multiply %20, %23 : tensor<3x1x3xf32>
%25 = stablehlo.broadcast_in_dim %18, dims = [1, 2] : (tensor<1x3xf32>) -> tensor<3x1x3xf32>
%26 = stablehlo.multiply %22, %25 : tensor<3x1x3xf32>
%27 = stablehlo.add %24, %26 : tensor<3x1x3xf32>
%28 = stablehlo.add %14, %27 : tensor<3x1x3xf32>
%29 = stablehlo.reshape %28 : (tensor<3x1x3xf32>) -> tensor<3x3xf32>
%30 = stablehlo.transpose %29, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
return %30 : tensor<3x3xf32>
}
}
