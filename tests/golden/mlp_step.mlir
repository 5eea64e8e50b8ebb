module @f0 {
func.func public @main(%a0: tensor<8xf32>, %a1: tensor<4x8xf32>, %a2: tensor<8x3xf32>, %a3: tensor<5x4xf32>, %a4: tensor<5x3xf32>) -> (tensor<f32>, tensor<8xf32>, tensor<4x8xf32>, tensor<8x3xf32>) {
%0 = stablehlo.dot_general %a3, %a1, contracting_dims = [1] x [0] : (tensor<5x4xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
%1 = stablehlo.broadcast_in_dim %a0, dims = [1] : (tensor<8xf32>) -> tensor<5x8xf32>
%2 = stablehlo.add %0, %1 : tensor<5x8xf32>
%3 = stablehlo.tanh %2 : tensor<5x8xf32>
%4 = stablehlo.constant dense<1.0> : tensor<f32>
%5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
%6 = stablehlo.add %5, %3 : tensor<5x8xf32>
%7 = stablehlo.constant dense<1.0> : tensor<f32>
%8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
%9 = stablehlo.subtract %8, %3 : tensor<5x8xf32>
%10 = stablehlo.multiply %6, %9 : tensor<5x8xf32>
%11 = stablehlo.dot_general %3, %a2, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x3xf32>) -> tensor<5x3xf32>
%12 = stablehlo.constant dense<0xFF800000> : tensor<f32>
%13 = stablehlo.reduce(%11 init: %12) applies stablehlo.maximum across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%14 = stablehlo.constant dense<0xFF800000> : tensor<f32>
%15 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<f32>) -> tensor<5xf32>
%16 = stablehlo.maximum %13, %15 : tensor<5xf32>
%17 = stablehlo.reshape %16 : (tensor<5xf32>) -> tensor<5x1xf32>
%18 = stablehlo.broadcast_in_dim %17, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x3xf32>
%19 = stablehlo.subtract %11, %18 : tensor<5x3xf32>
%20 = stablehlo.exponential %19 : tensor<5x3xf32>
%21 = stablehlo.constant dense<0.0> : tensor<f32>
%22 = stablehlo.reduce(%20 init: %21) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%23 = stablehlo.reshape %22 : (tensor<5xf32>) -> tensor<5x1xf32>
%24 = stablehlo.log %23 : tensor<5x1xf32>
%25 = stablehlo.constant dense<1.0> : tensor<f32>
%26 = stablehlo.broadcast_in_dim %25, dims = [] : (tensor<f32>) -> tensor<5x1xf32>
%27 = stablehlo.divide %26, %23 : tensor<5x1xf32>
%28 = stablehlo.broadcast_in_dim %24, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x3xf32>
%29 = stablehlo.subtract %19, %28 : tensor<5x3xf32>
%30 = stablehlo.multiply %29, %a4 : tensor<5x3xf32>
%31 = stablehlo.constant dense<0.0> : tensor<f32>
%32 = stablehlo.reduce(%30 init: %31) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%33 = stablehlo.constant dense<0.0> : tensor<f32>
%34 = stablehlo.reduce(%32 init: %33) applies stablehlo.add across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
%35 = stablehlo.constant dense<5.0> : tensor<f32>
%36 = stablehlo.divide %34, %35 : tensor<f32>
%37 = stablehlo.negate %36 : tensor<f32>
%38 = stablehlo.constant dense<1.0> : tensor<f32>
%39 = stablehlo.negate %38 : tensor<f32>
%40 = stablehlo.constant dense<5.0> : tensor<f32>
%41 = stablehlo.divide %39, %40 : tensor<f32>
%42 = stablehlo.broadcast_in_dim %41, dims = [] : (tensor<f32>) -> tensor<5xf32>
%43 = stablehlo.broadcast_in_dim %42, dims = [0] : (tensor<5xf32>) -> tensor<5x3xf32>
%44 = stablehlo.multiply %43, %a4 : tensor<5x3xf32>
%45 = stablehlo.negate %44 : tensor<5x3xf32>
%46 = stablehlo.constant dense<0.0> : tensor<f32>
%47 = stablehlo.reduce(%45 init: %46) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%48 = stablehlo.reshape %47 : (tensor<5xf32>) -> tensor<5x1xf32>
%49 = stablehlo.multiply %48, %27 : tensor<5x1xf32>
%50 = stablehlo.reshape %49 : (tensor<5x1xf32>) -> tensor<5xf32>
%51 = stablehlo.broadcast_in_dim %50, dims = [0] : (tensor<5xf32>) -> tensor<5x3xf32>
%52 = stablehlo.multiply %51, %20 : tensor<5x3xf32>
%53 = stablehlo.add %44, %52 : tensor<5x3xf32>
%54 = stablehlo.dot_general %3, %53, contracting_dims = [0] x [0] : (tensor<5x8xf32>, tensor<5x3xf32>) -> tensor<8x3xf32>
%55 = stablehlo.dot_general %53, %a2, contracting_dims = [1] x [1] : (tensor<5x3xf32>, tensor<8x3xf32>) -> tensor<5x8xf32>
%56 = stablehlo.multiply %55, %10 : tensor<5x8xf32>
%57 = stablehlo.constant dense<0.0> : tensor<f32>
%58 = stablehlo.reduce(%56 init: %57) applies stablehlo.add across dimensions = [0] : (tensor<5x8xf32>, tensor<f32>) -> tensor<8xf32>
%59 = stablehlo.dot_general %a3, %56, contracting_dims = [0] x [0] : (tensor<5x4xf32>, tensor<5x8xf32>) -> tensor<4x8xf32>
%60 = stablehlo.constant dense<0.10000000149011612> : tensor<f32>
%61 = stablehlo.broadcast_in_dim %60, dims = [] : (tensor<f32>) -> tensor<8xf32>
%62 = stablehlo.multiply %61, %58 : tensor<8xf32>
%63 = stablehlo.subtract %a0, %62 : tensor<8xf32>
%64 = stablehlo.constant dense<0.10000000149011612> : tensor<f32>
%65 = stablehlo.broadcast_in_dim %64, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
%66 = stablehlo.multiply %65, %59 : tensor<4x8xf32>
%67 = stablehlo.subtract %a1, %66 : tensor<4x8xf32>
%68 = stablehlo.constant dense<0.10000000149011612> : tensor<f32>
%69 = stablehlo.broadcast_in_dim %68, dims = [] : (tensor<f32>) -> tensor<8x3xf32>
%70 = stablehlo.multiply %69, %54 : tensor<8x3xf32>
%71 = stablehlo.subtract %a2, %70 : tensor<8x3xf32>
return %37, %63, %67, %71 : tensor<f32>, tensor<8xf32>, tensor<4x8xf32>, tensor<8x3xf32>
}
}
