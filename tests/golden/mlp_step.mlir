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
%20 = stablehlo.reshape %19 : (tensor<5xf32>) -> tensor<5x1xf32>
%21 = stablehlo.broadcast_in_dim %20, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x3xf32>
%22 = stablehlo.subtract %17, %21 : tensor<5x3xf32>
%23 = stablehlo.exponential %22 : tensor<5x3xf32>
%24 = stablehlo.constant dense<0.0> : tensor<f32>
%25 = stablehlo.reduce(%23 init: %24) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%26 = stablehlo.reshape %25 : (tensor<5xf32>) -> tensor<5x1xf32>
%27 = stablehlo.broadcast_in_dim %26, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x3xf32>
%28 = stablehlo.divide %23, %27 : tensor<5x3xf32>
%29 = stablehlo.log %26 : tensor<5x1xf32>
%30 = stablehlo.broadcast_in_dim %29, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x3xf32>
%31 = stablehlo.subtract %22, %30 : tensor<5x3xf32>
%32 = stablehlo.multiply %31, %a4 : tensor<5x3xf32>
%33 = stablehlo.constant dense<0.0> : tensor<f32>
%34 = stablehlo.reduce(%32 init: %33) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%35 = stablehlo.constant dense<0.0> : tensor<f32>
%36 = stablehlo.reduce(%34 init: %35) applies stablehlo.add across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
%37 = stablehlo.constant dense<5.0> : tensor<f32>
%38 = stablehlo.divide %36, %37 : tensor<f32>
%39 = stablehlo.negate %38 : tensor<f32>
%40 = stablehlo.constant dense<1.0> : tensor<f32>
%41 = stablehlo.negate %40 : tensor<f32>
%42 = stablehlo.constant dense<5.0> : tensor<f32>
%43 = stablehlo.divide %41, %42 : tensor<f32>
%44 = stablehlo.broadcast_in_dim %43, dims = [] : (tensor<f32>) -> tensor<5xf32>
%45 = stablehlo.broadcast_in_dim %44, dims = [0] : (tensor<5xf32>) -> tensor<5x3xf32>
%46 = stablehlo.multiply %45, %a4 : tensor<5x3xf32>
%47 = stablehlo.negate %46 : tensor<5x3xf32>
%48 = stablehlo.constant dense<0.0> : tensor<f32>
%49 = stablehlo.reduce(%47 init: %48) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%50 = stablehlo.reshape %49 : (tensor<5xf32>) -> tensor<5x1xf32>
%51 = stablehlo.reshape %50 : (tensor<5x1xf32>) -> tensor<5xf32>
%52 = stablehlo.broadcast_in_dim %51, dims = [0] : (tensor<5xf32>) -> tensor<5x3xf32>
%53 = stablehlo.multiply %52, %28 : tensor<5x3xf32>
%54 = stablehlo.add %46, %53 : tensor<5x3xf32>
%55 = stablehlo.negate %54 : tensor<5x3xf32>
%56 = stablehlo.constant dense<0.0> : tensor<f32>
%57 = stablehlo.reduce(%55 init: %56) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>
%58 = stablehlo.reshape %57 : (tensor<5xf32>) -> tensor<5x1xf32>
%59 = stablehlo.reshape %58 : (tensor<5x1xf32>) -> tensor<5xf32>
%60 = stablehlo.broadcast_in_dim %59, dims = [0] : (tensor<5xf32>) -> tensor<5x3xf32>
%61 = stablehlo.multiply %60, %28 : tensor<5x3xf32>
%62 = stablehlo.add %54, %61 : tensor<5x3xf32>
%63 = stablehlo.dot_general %3, %62, contracting_dims = [0] x [0] : (tensor<5x8xf32>, tensor<5x3xf32>) -> tensor<8x3xf32>
%64 = stablehlo.dot_general %62, %a2, contracting_dims = [1] x [1] : (tensor<5x3xf32>, tensor<8x3xf32>) -> tensor<5x8xf32>
%65 = stablehlo.multiply %64, %16 : tensor<5x8xf32>
%66 = stablehlo.constant dense<0.0> : tensor<f32>
%67 = stablehlo.reduce(%65 init: %66) applies stablehlo.add across dimensions = [0] : (tensor<5x8xf32>, tensor<f32>) -> tensor<8xf32>
%68 = stablehlo.dot_general %a3, %65, contracting_dims = [0] x [0] : (tensor<5x4xf32>, tensor<5x8xf32>) -> tensor<4x8xf32>
%69 = stablehlo.constant dense<0.10000000149011612> : tensor<8xf32>
%70 = stablehlo.multiply %69, %67 : tensor<8xf32>
%71 = stablehlo.subtract %a0, %70 : tensor<8xf32>
%72 = stablehlo.constant dense<0.10000000149011612> : tensor<4x8xf32>
%73 = stablehlo.multiply %72, %68 : tensor<4x8xf32>
%74 = stablehlo.subtract %a1, %73 : tensor<4x8xf32>
%75 = stablehlo.constant dense<0.10000000149011612> : tensor<8x3xf32>
%76 = stablehlo.multiply %75, %63 : tensor<8x3xf32>
%77 = stablehlo.subtract %a2, %76 : tensor<8x3xf32>
return %39, %71, %74, %77 : tensor<f32>, tensor<8xf32>, tensor<4x8xf32>, tensor<8x3xf32>
}
}
