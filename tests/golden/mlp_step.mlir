module @f0 {
func.func public @main(%a0: tensor<8xf32>, %a1: tensor<4x8xf32>, %a2: tensor<8x3xf32>, %a3: tensor<5x4xf32>, %a4: tensor<5x3xf32>) -> (tensor<f32>, tensor<8xf32>, tensor<4x8xf32>, tensor<8x3xf32>) {
%0 = stablehlo.dot_general %a3, %a1, contracting_dims = [1] x [0] : (tensor<5x4xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
%1 = stablehlo.broadcast_in_dim %a0, dims = [1] : (tensor<8xf32>) -> tensor<5x8xf32>
%2 = stablehlo.add %0, %1 : tensor<5x8xf32>
%3 = stablehlo.tanh %2 : tensor<5x8xf32>
%4 = stablehlo.multiply %3, %3 : tensor<5x8xf32>
%5 = stablehlo.constant dense<1.0> : tensor<f32>
%6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
%7 = stablehlo.subtract %6, %4 : tensor<5x8xf32>
%8 = stablehlo.abs %2 : tensor<5x8xf32>
%9 = stablehlo.constant dense<-2.0> : tensor<f32>
%10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
%11 = stablehlo.multiply %8, %10 : tensor<5x8xf32>
%12 = stablehlo.exponential %11 : tensor<5x8xf32>
%13 = stablehlo.constant dense<4.0> : tensor<f32>
%14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
%15 = stablehlo.multiply %12, %14 : tensor<5x8xf32>
%16 = stablehlo.constant dense<1.0> : tensor<f32>
%17 = stablehlo.broadcast_in_dim %16, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
%18 = stablehlo.add %12, %17 : tensor<5x8xf32>
%19 = stablehlo.multiply %18, %18 : tensor<5x8xf32>
%20 = stablehlo.divide %15, %19 : tensor<5x8xf32>
%21 = stablehlo.abs %3 : tensor<5x8xf32>
%22 = stablehlo.constant dense<0.5> : tensor<f32>
%23 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
%24 = stablehlo.compare LT, %21, %23, FLOAT : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xi1>
%25 = stablehlo.select %24, %7, %20 : tensor<5x8xi1>, tensor<5x8xf32>
%26 = stablehlo.dot_general %3, %a2, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x3xf32>) -> tensor<5x3xf32>
%27 = stablehlo.constant dense<0xFF800000> : tensor<f32>
%28 = stablehlo.reduce(%26 init: %27) applies stablehlo.maximum across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%29 = stablehlo.constant dense<0xFF800000> : tensor<f32>
%30 = stablehlo.broadcast_in_dim %29, dims = [] : (tensor<f32>) -> tensor<5xf32>
%31 = stablehlo.maximum %28, %30 : tensor<5xf32>
%32 = stablehlo.reshape %31 : (tensor<5xf32>) -> tensor<5x1xf32>
%33 = stablehlo.broadcast_in_dim %32, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x3xf32>
%34 = stablehlo.subtract %26, %33 : tensor<5x3xf32>
%35 = stablehlo.exponential %34 : tensor<5x3xf32>
%36 = stablehlo.constant dense<0.0> : tensor<f32>
%37 = stablehlo.reduce(%35 init: %36) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%38 = stablehlo.reshape %37 : (tensor<5xf32>) -> tensor<5x1xf32>
%39 = stablehlo.log %38 : tensor<5x1xf32>
%40 = stablehlo.broadcast_in_dim %39, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x3xf32>
%41 = stablehlo.subtract %34, %40 : tensor<5x3xf32>
%42 = stablehlo.constant dense<0xFF800000> : tensor<f32>
%43 = stablehlo.reduce(%26 init: %42) applies stablehlo.maximum across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%44 = stablehlo.constant dense<0xFF800000> : tensor<f32>
%45 = stablehlo.broadcast_in_dim %44, dims = [] : (tensor<f32>) -> tensor<5xf32>
%46 = stablehlo.maximum %43, %45 : tensor<5xf32>
%47 = stablehlo.reshape %46 : (tensor<5xf32>) -> tensor<5x1xf32>
%48 = stablehlo.broadcast_in_dim %47, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x3xf32>
%49 = stablehlo.subtract %26, %48 : tensor<5x3xf32>
%50 = stablehlo.exponential %49 : tensor<5x3xf32>
%51 = stablehlo.constant dense<0.0> : tensor<f32>
%52 = stablehlo.reduce(%50 init: %51) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%53 = stablehlo.reshape %52 : (tensor<5xf32>) -> tensor<5x1xf32>
%54 = stablehlo.broadcast_in_dim %53, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x3xf32>
%55 = stablehlo.divide %50, %54 : tensor<5x3xf32>
%56 = stablehlo.multiply %41, %a4 : tensor<5x3xf32>
%57 = stablehlo.constant dense<0.0> : tensor<f32>
%58 = stablehlo.reduce(%56 init: %57) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%59 = stablehlo.constant dense<0.0> : tensor<f32>
%60 = stablehlo.reduce(%58 init: %59) applies stablehlo.add across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
%61 = stablehlo.constant dense<5.0> : tensor<f32>
%62 = stablehlo.divide %60, %61 : tensor<f32>
%63 = stablehlo.negate %62 : tensor<f32>
%64 = stablehlo.constant dense<1.0> : tensor<f32>
%65 = stablehlo.negate %64 : tensor<f32>
%66 = stablehlo.constant dense<5.0> : tensor<f32>
%67 = stablehlo.divide %65, %66 : tensor<f32>
%68 = stablehlo.broadcast_in_dim %67, dims = [] : (tensor<f32>) -> tensor<5xf32>
%69 = stablehlo.broadcast_in_dim %68, dims = [0] : (tensor<5xf32>) -> tensor<5x3xf32>
%70 = stablehlo.multiply %69, %a4 : tensor<5x3xf32>
%71 = stablehlo.negate %70 : tensor<5x3xf32>
%72 = stablehlo.constant dense<0.0> : tensor<f32>
%73 = stablehlo.reduce(%71 init: %72) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%74 = stablehlo.reshape %73 : (tensor<5xf32>) -> tensor<5x1xf32>
%75 = stablehlo.reshape %74 : (tensor<5x1xf32>) -> tensor<5xf32>
%76 = stablehlo.broadcast_in_dim %75, dims = [0] : (tensor<5xf32>) -> tensor<5x3xf32>
%77 = stablehlo.multiply %76, %55 : tensor<5x3xf32>
%78 = stablehlo.add %70, %77 : tensor<5x3xf32>
%79 = stablehlo.negate %78 : tensor<5x3xf32>
%80 = stablehlo.constant dense<0.0> : tensor<f32>
%81 = stablehlo.reduce(%79 init: %80) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%82 = stablehlo.reshape %81 : (tensor<5xf32>) -> tensor<5x1xf32>
%83 = stablehlo.reshape %82 : (tensor<5x1xf32>) -> tensor<5xf32>
%84 = stablehlo.broadcast_in_dim %83, dims = [0] : (tensor<5xf32>) -> tensor<5x3xf32>
%85 = stablehlo.multiply %84, %55 : tensor<5x3xf32>
%86 = stablehlo.add %78, %85 : tensor<5x3xf32>
%87 = stablehlo.dot_general %3, %86, contracting_dims = [0] x [0] : (tensor<5x8xf32>, tensor<5x3xf32>) -> tensor<8x3xf32>
%88 = stablehlo.dot_general %86, %a2, contracting_dims = [1] x [1] : (tensor<5x3xf32>, tensor<8x3xf32>) -> tensor<5x8xf32>
%89 = stablehlo.multiply %88, %25 : tensor<5x8xf32>
%90 = stablehlo.constant dense<0.0> : tensor<f32>
%91 = stablehlo.reduce(%89 init: %90) applies stablehlo.add across dimensions = [0] : (tensor<5x8xf32>, tensor<f32>) -> tensor<8xf32>
%92 = stablehlo.dot_general %a3, %89, contracting_dims = [0] x [0] : (tensor<5x4xf32>, tensor<5x8xf32>) -> tensor<4x8xf32>
%93 = stablehlo.constant dense<0.10000000149011612> : tensor<f32>
%94 = stablehlo.broadcast_in_dim %93, dims = [] : (tensor<f32>) -> tensor<8xf32>
%95 = stablehlo.multiply %94, %91 : tensor<8xf32>
%96 = stablehlo.subtract %a0, %95 : tensor<8xf32>
%97 = stablehlo.constant dense<0.10000000149011612> : tensor<f32>
%98 = stablehlo.broadcast_in_dim %97, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
%99 = stablehlo.multiply %98, %92 : tensor<4x8xf32>
%100 = stablehlo.subtract %a1, %99 : tensor<4x8xf32>
%101 = stablehlo.constant dense<0.10000000149011612> : tensor<f32>
%102 = stablehlo.broadcast_in_dim %101, dims = [] : (tensor<f32>) -> tensor<8x3xf32>
%103 = stablehlo.multiply %102, %87 : tensor<8x3xf32>
%104 = stablehlo.subtract %a2, %103 : tensor<8x3xf32>
return %63, %96, %100, %104 : tensor<f32>, tensor<8xf32>, tensor<4x8xf32>, tensor<8x3xf32>
}
}
