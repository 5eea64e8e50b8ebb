module @f0 {
func.func public @main(%a0: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xi32>, tensor<i32>, tensor<6xf32>, tensor<2xf32>, tensor<2xi32>) {
%0 = stablehlo.iota dim = 0 : tensor<6xi32>
%1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
%2 = stablehlo.constant dense<0> : tensor<i32>
%21:2 = "stablehlo.reduce"(%a0, %0, %1, %2) ({
^bb0(%b3: tensor<f32>, %b4: tensor<i32>, %b5: tensor<f32>, %b6: tensor<i32>):
%7 = stablehlo.compare GT, %b3, %b5 : (tensor<f32>, tensor<f32>) -> tensor<i1>
%8 = stablehlo.compare EQ, %b3, %b5 : (tensor<f32>, tensor<f32>) -> tensor<i1>
%9 = stablehlo.compare NE, %b3, %b3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
%10 = stablehlo.compare NE, %b5, %b5 : (tensor<f32>, tensor<f32>) -> tensor<i1>
%11 = stablehlo.compare EQ, %b5, %b5 : (tensor<f32>, tensor<f32>) -> tensor<i1>
%12 = stablehlo.and %9, %11 : tensor<i1>
%13 = stablehlo.or %7, %12 : tensor<i1>
%14 = stablehlo.and %9, %10 : tensor<i1>
%15 = stablehlo.or %8, %14 : tensor<i1>
%16 = stablehlo.compare LT, %b4, %b6 : (tensor<i32>, tensor<i32>) -> tensor<i1>
%17 = stablehlo.and %15, %16 : tensor<i1>
%18 = stablehlo.or %13, %17 : tensor<i1>
%19 = stablehlo.select %18, %b3, %b5 : tensor<i1>, tensor<f32>
%20 = stablehlo.select %18, %b4, %b6 : tensor<i1>, tensor<i32>
stablehlo.return %19, %20 : tensor<f32>, tensor<i32>
}) {dimensions = array<i64: 0>} : (tensor<6xf32>, tensor<6xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
%37 = "stablehlo.sort"(%a0) <{dimension = 0 : i64, is_stable = true}> ({
^bb0(%b22: tensor<f32>, %b23: tensor<f32>):
%24 = stablehlo.constant dense<0.0> : tensor<f32>
%25 = stablehlo.compare EQ, %b22, %24, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
%26 = stablehlo.select %25, %24, %b22 : tensor<i1>, tensor<f32>
%27 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
%28 = stablehlo.compare NE, %b22, %b22, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
%29 = stablehlo.select %28, %27, %26 : tensor<i1>, tensor<f32>
%30 = stablehlo.constant dense<0.0> : tensor<f32>
%31 = stablehlo.compare EQ, %b23, %30, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
%32 = stablehlo.select %31, %30, %b23 : tensor<i1>, tensor<f32>
%33 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
%34 = stablehlo.compare NE, %b23, %b23, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
%35 = stablehlo.select %34, %33, %32 : tensor<i1>, tensor<f32>
%36 = stablehlo.compare LT, %29, %35, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
stablehlo.return %36 : tensor<i1>
}) : (tensor<6xf32>) -> (tensor<6xf32>)
%38 = stablehlo.iota dim = 0 : tensor<6xi32>
%56:2 = "stablehlo.sort"(%a0, %38) <{dimension = 0 : i64, is_stable = true}> ({
^bb0(%b39: tensor<f32>, %b40: tensor<f32>, %b41: tensor<i32>, %b42: tensor<i32>):
%43 = stablehlo.constant dense<0.0> : tensor<f32>
%44 = stablehlo.compare EQ, %b39, %43, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
%45 = stablehlo.select %44, %43, %b39 : tensor<i1>, tensor<f32>
%46 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
%47 = stablehlo.compare NE, %b39, %b39, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
%48 = stablehlo.select %47, %46, %45 : tensor<i1>, tensor<f32>
%49 = stablehlo.constant dense<0.0> : tensor<f32>
%50 = stablehlo.compare EQ, %b40, %49, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
%51 = stablehlo.select %50, %49, %b40 : tensor<i1>, tensor<f32>
%52 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
%53 = stablehlo.compare NE, %b40, %b40, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
%54 = stablehlo.select %53, %52, %51 : tensor<i1>, tensor<f32>
%55 = stablehlo.compare LT, %48, %54, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
stablehlo.return %55 : tensor<i1>
}) : (tensor<6xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>)
%57 = stablehlo.constant dense<0> : tensor<i32>
%58 = stablehlo.constant dense<0> : tensor<i32>
%59 = stablehlo.dynamic_slice %a0, %57, sizes = [1] : (tensor<6xf32>, tensor<i32>) -> tensor<1xf32>
%60 = stablehlo.constant dense<0.0> : tensor<6xf32>
%61 = stablehlo.dynamic_update_slice %60, %59, %57 : (tensor<6xf32>, tensor<1xf32>, tensor<i32>) -> tensor<6xf32>
%62 = stablehlo.constant dense<1> : tensor<i32>
%79:4 = "stablehlo.while"(%62, %59, %61, %a0) ({
^bb0(%b63: tensor<i32>, %b64: tensor<1xf32>, %b65: tensor<6xf32>, %b66: tensor<6xf32>):
%67 = stablehlo.constant dense<6> : tensor<i32>
%68 = stablehlo.compare LT, %b63, %67 : (tensor<i32>, tensor<i32>) -> tensor<i1>
stablehlo.return %68 : tensor<i1>
}, {
^bb0(%b69: tensor<i32>, %b70: tensor<1xf32>, %b71: tensor<6xf32>, %b72: tensor<6xf32>):
%73 = stablehlo.constant dense<0> : tensor<i32>
%74 = stablehlo.dynamic_slice %b72, %b69, sizes = [1] : (tensor<6xf32>, tensor<i32>) -> tensor<1xf32>
%75 = stablehlo.add %b70, %74 : tensor<1xf32>
%76 = stablehlo.constant dense<1> : tensor<i32>
%77 = stablehlo.add %b69, %76 : tensor<i32>
%78 = stablehlo.dynamic_update_slice %b71, %75, %b69 : (tensor<6xf32>, tensor<1xf32>, tensor<i32>) -> tensor<6xf32>
stablehlo.return %77, %75, %78, %b72 : tensor<i32>, tensor<1xf32>, tensor<6xf32>, tensor<6xf32>
}) : (tensor<i32>, tensor<1xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<i32>, tensor<1xf32>, tensor<6xf32>, tensor<6xf32>)
%80:2 = chlo.top_k(%a0, k = 2) : tensor<6xf32> -> (tensor<2xf32>, tensor<2xi32>)
return %37, %56#1, %21#1, %79#2, %80#0, %80#1 : tensor<6xf32>, tensor<6xi32>, tensor<i32>, tensor<6xf32>, tensor<2xf32>, tensor<2xi32>
}
}
