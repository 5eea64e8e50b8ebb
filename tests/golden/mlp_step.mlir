module @f0 {
func.func public @main(%a0: tensor<8xf32>, %a1: tensor<4x8xf32>, %a2: tensor<8x3xf32>, %a3: tensor<5x4xf32>, %a4: tensor<5x3xf32>) -> (tensor<f32>, tensor<8xf32>, tensor<4x8xf32>, tensor<8x3xf32>) {
%0 = stablehlo.dot_general %a3, %a1, contracting_dims = [1] x [0] : (tensor<5x4xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
%1 = stablehlo.broadcast_in_dim %a0, dims = [1] : (tensor<8xf32>) -> tensor<5x8xf32>
%2 = stablehlo.add %0, %1 : tensor<5x8xf32>
%3 = stablehlo.tanh %2 : tensor<5x8xf32>
%4 = stablehlo.abs %2 : tensor<5x8xf32>
%5 = stablehlo.constant dense<-2.0> : tensor<f32>
%6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
%7 = stablehlo.multiply %4, %6 : tensor<5x8xf32>
%8 = stablehlo.exponential %7 : tensor<5x8xf32>
%9 = stablehlo.constant dense<1.0> : tensor<f32>
%10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
%11 = stablehlo.add %8, %10 : tensor<5x8xf32>
%12 = stablehlo.constant dense<4.0> : tensor<f32>
%13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
%14 = stablehlo.multiply %8, %13 : tensor<5x8xf32>
%15 = stablehlo.multiply %11, %11 : tensor<5x8xf32>
%16 = stablehlo.divide %14, %15 : tensor<5x8xf32>
%17 = stablehlo.dot_general %3, %a2, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x3xf32>) -> tensor<5x3xf32>
%18 = stablehlo.constant dense<0xFF800000> : tensor<f32>
%19 = stablehlo.reduce(%17 init: %18) applies stablehlo.maximum across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%20 = stablehlo.constant dense<0xFF800000> : tensor<5xf32>
%21 = stablehlo.maximum %19, %20 : tensor<5xf32>
%22 = stablehlo.reshape %21 : (tensor<5xf32>) -> tensor<5x1xf32>
%23 = stablehlo.broadcast_in_dim %22, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x3xf32>
%24 = stablehlo.subtract %17, %23 : tensor<5x3xf32>
%25 = stablehlo.exponential %24 : tensor<5x3xf32>
%26 = stablehlo.constant dense<0.0> : tensor<f32>
%27 = stablehlo.reduce(%25 init: %26) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%28 = stablehlo.reshape %27 : (tensor<5xf32>) -> tensor<5x1xf32>
%29 = stablehlo.log %28 : tensor<5x1xf32>
%30 = stablehlo.broadcast_in_dim %29, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x3xf32>
%31 = stablehlo.subtract %24, %30 : tensor<5x3xf32>
%32 = stablehlo.constant dense<0xFF800000> : tensor<f32>
%33 = stablehlo.reduce(%17 init: %32) applies stablehlo.maximum across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%34 = stablehlo.constant dense<0xFF800000> : tensor<5xf32>
%35 = stablehlo.maximum %33, %34 : tensor<5xf32>
%36 = stablehlo.reshape %35 : (tensor<5xf32>) -> tensor<5x1xf32>
%37 = stablehlo.broadcast_in_dim %36, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x3xf32>
%38 = stablehlo.subtract %17, %37 : tensor<5x3xf32>
%39 = stablehlo.exponential %38 : tensor<5x3xf32>
%40 = stablehlo.constant dense<0.0> : tensor<f32>
%41 = stablehlo.reduce(%39 init: %40) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%42 = stablehlo.reshape %41 : (tensor<5xf32>) -> tensor<5x1xf32>
%43 = stablehlo.broadcast_in_dim %42, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x3xf32>
%44 = stablehlo.divide %39, %43 : tensor<5x3xf32>
%45 = stablehlo.multiply %31, %a4 : tensor<5x3xf32>
%46 = stablehlo.constant dense<0.0> : tensor<f32>
%47 = stablehlo.reduce(%45 init: %46) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%48 = stablehlo.constant dense<0.0> : tensor<f32>
%49 = stablehlo.reduce(%47 init: %48) applies stablehlo.add across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
%50 = stablehlo.constant dense<5.0> : tensor<f32>
%51 = stablehlo.divide %49, %50 : tensor<f32>
%52 = stablehlo.negate %51 : tensor<f32>
%53 = stablehlo.constant dense<1.0> : tensor<f32>
%54 = stablehlo.negate %53 : tensor<f32>
%55 = stablehlo.constant dense<5.0> : tensor<f32>
%56 = stablehlo.divide %54, %55 : tensor<f32>
%57 = stablehlo.broadcast_in_dim %56, dims = [] : (tensor<f32>) -> tensor<5xf32>
%58 = stablehlo.broadcast_in_dim %57, dims = [0] : (tensor<5xf32>) -> tensor<5x3xf32>
%59 = stablehlo.multiply %58, %a4 : tensor<5x3xf32>
%60 = stablehlo.negate %59 : tensor<5x3xf32>
%61 = stablehlo.constant dense<0.0> : tensor<f32>
%62 = stablehlo.reduce(%60 init: %61) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%63 = stablehlo.reshape %62 : (tensor<5xf32>) -> tensor<5x1xf32>
%64 = stablehlo.reshape %63 : (tensor<5x1xf32>) -> tensor<5xf32>
%65 = stablehlo.broadcast_in_dim %64, dims = [0] : (tensor<5xf32>) -> tensor<5x3xf32>
%66 = stablehlo.multiply %65, %44 : tensor<5x3xf32>
%67 = stablehlo.add %59, %66 : tensor<5x3xf32>
%68 = stablehlo.negate %67 : tensor<5x3xf32>
%69 = stablehlo.constant dense<0.0> : tensor<f32>
%70 = stablehlo.reduce(%68 init: %69) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%71 = stablehlo.reshape %70 : (tensor<5xf32>) -> tensor<5x1xf32>
%72 = stablehlo.reshape %71 : (tensor<5x1xf32>) -> tensor<5xf32>
%73 = stablehlo.broadcast_in_dim %72, dims = [0] : (tensor<5xf32>) -> tensor<5x3xf32>
%74 = stablehlo.multiply %73, %44 : tensor<5x3xf32>
%75 = stablehlo.add %67, %74 : tensor<5x3xf32>
%76 = stablehlo.dot_general %3, %75, contracting_dims = [0] x [0] : (tensor<5x8xf32>, tensor<5x3xf32>) -> tensor<8x3xf32>
%77 = stablehlo.dot_general %75, %a2, contracting_dims = [1] x [1] : (tensor<5x3xf32>, tensor<8x3xf32>) -> tensor<5x8xf32>
%78 = stablehlo.multiply %77, %16 : tensor<5x8xf32>
%79 = stablehlo.constant dense<0.0> : tensor<f32>
%80 = stablehlo.reduce(%78 init: %79) applies stablehlo.add across dimensions = [0] : (tensor<5x8xf32>, tensor<f32>) -> tensor<8xf32>
%81 = stablehlo.dot_general %a3, %78, contracting_dims = [0] x [0] : (tensor<5x4xf32>, tensor<5x8xf32>) -> tensor<4x8xf32>
%82 = stablehlo.constant dense<0.10000000149011612> : tensor<8xf32>
%83 = stablehlo.multiply %82, %80 : tensor<8xf32>
%84 = stablehlo.subtract %a0, %83 : tensor<8xf32>
%85 = stablehlo.constant dense<0.10000000149011612> : tensor<4x8xf32>
%86 = stablehlo.multiply %85, %81 : tensor<4x8xf32>
%87 = stablehlo.subtract %a1, %86 : tensor<4x8xf32>
%88 = stablehlo.constant dense<0.10000000149011612> : tensor<8x3xf32>
%89 = stablehlo.multiply %88, %76 : tensor<8x3xf32>
%90 = stablehlo.subtract %a2, %89 : tensor<8x3xf32>
return %52, %84, %87, %90 : tensor<f32>, tensor<8xf32>, tensor<4x8xf32>, tensor<8x3xf32>
}
}
