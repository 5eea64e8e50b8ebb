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
%40 = stablehlo.constant dense<1.0> : tensor<f32>
%41 = stablehlo.broadcast_in_dim %40, dims = [] : (tensor<f32>) -> tensor<5x1xf32>
%42 = stablehlo.divide %41, %38 : tensor<5x1xf32>
%43 = stablehlo.broadcast_in_dim %39, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x3xf32>
%44 = stablehlo.subtract %34, %43 : tensor<5x3xf32>
%45 = stablehlo.multiply %44, %a4 : tensor<5x3xf32>
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
%64 = stablehlo.multiply %63, %42 : tensor<5x1xf32>
%65 = stablehlo.reshape %64 : (tensor<5x1xf32>) -> tensor<5xf32>
%66 = stablehlo.broadcast_in_dim %65, dims = [0] : (tensor<5xf32>) -> tensor<5x3xf32>
%67 = stablehlo.multiply %66, %35 : tensor<5x3xf32>
%68 = stablehlo.add %59, %67 : tensor<5x3xf32>
%69 = stablehlo.dot_general %3, %68, contracting_dims = [0] x [0] : (tensor<5x8xf32>, tensor<5x3xf32>) -> tensor<8x3xf32>
%70 = stablehlo.dot_general %68, %a2, contracting_dims = [1] x [1] : (tensor<5x3xf32>, tensor<8x3xf32>) -> tensor<5x8xf32>
%71 = stablehlo.multiply %70, %25 : tensor<5x8xf32>
%72 = stablehlo.constant dense<0.0> : tensor<f32>
%73 = stablehlo.reduce(%71 init: %72) applies stablehlo.add across dimensions = [0] : (tensor<5x8xf32>, tensor<f32>) -> tensor<8xf32>
%74 = stablehlo.dot_general %a3, %71, contracting_dims = [0] x [0] : (tensor<5x4xf32>, tensor<5x8xf32>) -> tensor<4x8xf32>
%75 = stablehlo.constant dense<0.10000000149011612> : tensor<f32>
%76 = stablehlo.broadcast_in_dim %75, dims = [] : (tensor<f32>) -> tensor<8xf32>
%77 = stablehlo.multiply %76, %73 : tensor<8xf32>
%78 = stablehlo.subtract %a0, %77 : tensor<8xf32>
%79 = stablehlo.constant dense<0.10000000149011612> : tensor<f32>
%80 = stablehlo.broadcast_in_dim %79, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
%81 = stablehlo.multiply %80, %74 : tensor<4x8xf32>
%82 = stablehlo.subtract %a1, %81 : tensor<4x8xf32>
%83 = stablehlo.constant dense<0.10000000149011612> : tensor<f32>
%84 = stablehlo.broadcast_in_dim %83, dims = [] : (tensor<f32>) -> tensor<8x3xf32>
%85 = stablehlo.multiply %84, %69 : tensor<8x3xf32>
%86 = stablehlo.subtract %a2, %85 : tensor<8x3xf32>
return %52, %78, %82, %86 : tensor<f32>, tensor<8xf32>, tensor<4x8xf32>, tensor<8x3xf32>
}
}
