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
%22 = stablehlo.bitcast_convert %a0 : (tensor<6xf32>) -> tensor<6xi32>
%23 = stablehlo.constant dense<0> : tensor<6xi32>
%24 = stablehlo.compare LT, %22, %23, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
%25 = stablehlo.constant dense<-2147483648> : tensor<6xi32>
%26 = stablehlo.subtract %25, %22 : tensor<6xi32>
%27 = stablehlo.select %24, %26, %22 : tensor<6xi1>, tensor<6xi32>
%28 = stablehlo.compare NE, %a0, %a0, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
%29 = stablehlo.constant dense<2147483647> : tensor<6xi32>
%30 = stablehlo.select %28, %29, %27 : tensor<6xi1>, tensor<6xi32>
%36:2 = "stablehlo.sort"(%30, %a0) <{dimension = 0 : i64, is_stable = true}> ({
^bb0(%b31: tensor<i32>, %b32: tensor<i32>, %b33: tensor<f32>, %b34: tensor<f32>):
%35 = stablehlo.compare LT, %b31, %b32, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
stablehlo.return %35 : tensor<i1>
}) : (tensor<6xi32>, tensor<6xf32>) -> (tensor<6xi32>, tensor<6xf32>)
%37 = stablehlo.iota dim = 0 : tensor<6xi32>
%38 = stablehlo.bitcast_convert %a0 : (tensor<6xf32>) -> tensor<6xi32>
%39 = stablehlo.constant dense<0> : tensor<6xi32>
%40 = stablehlo.compare LT, %38, %39, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
%41 = stablehlo.constant dense<-2147483648> : tensor<6xi32>
%42 = stablehlo.subtract %41, %38 : tensor<6xi32>
%43 = stablehlo.select %40, %42, %38 : tensor<6xi1>, tensor<6xi32>
%44 = stablehlo.compare NE, %a0, %a0, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
%45 = stablehlo.constant dense<2147483647> : tensor<6xi32>
%46 = stablehlo.select %44, %45, %43 : tensor<6xi1>, tensor<6xi32>
%54:3 = "stablehlo.sort"(%46, %a0, %37) <{dimension = 0 : i64, is_stable = true}> ({
^bb0(%b47: tensor<i32>, %b48: tensor<i32>, %b49: tensor<f32>, %b50: tensor<f32>, %b51: tensor<i32>, %b52: tensor<i32>):
%53 = stablehlo.compare LT, %b47, %b48, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
stablehlo.return %53 : tensor<i1>
}) : (tensor<6xi32>, tensor<6xf32>, tensor<6xi32>) -> (tensor<6xi32>, tensor<6xf32>, tensor<6xi32>)
%55 = stablehlo.constant dense<0> : tensor<i32>
%56 = stablehlo.constant dense<0> : tensor<i32>
%57 = stablehlo.dynamic_slice %a0, %55, sizes = [1] : (tensor<6xf32>, tensor<i32>) -> tensor<1xf32>
%58 = stablehlo.constant dense<0.0> : tensor<6xf32>
%59 = stablehlo.dynamic_update_slice %58, %57, %55 : (tensor<6xf32>, tensor<1xf32>, tensor<i32>) -> tensor<6xf32>
%60 = stablehlo.constant dense<1> : tensor<i32>
%77:4 = "stablehlo.while"(%60, %57, %59, %a0) ({
^bb0(%b61: tensor<i32>, %b62: tensor<1xf32>, %b63: tensor<6xf32>, %b64: tensor<6xf32>):
%65 = stablehlo.constant dense<6> : tensor<i32>
%66 = stablehlo.compare LT, %b61, %65 : (tensor<i32>, tensor<i32>) -> tensor<i1>
stablehlo.return %66 : tensor<i1>
}, {
^bb0(%b67: tensor<i32>, %b68: tensor<1xf32>, %b69: tensor<6xf32>, %b70: tensor<6xf32>):
%71 = stablehlo.constant dense<0> : tensor<i32>
%72 = stablehlo.dynamic_slice %b70, %b67, sizes = [1] : (tensor<6xf32>, tensor<i32>) -> tensor<1xf32>
%73 = stablehlo.add %b68, %72 : tensor<1xf32>
%74 = stablehlo.constant dense<1> : tensor<i32>
%75 = stablehlo.add %b67, %74 : tensor<i32>
%76 = stablehlo.dynamic_update_slice %b69, %73, %b67 : (tensor<6xf32>, tensor<1xf32>, tensor<i32>) -> tensor<6xf32>
stablehlo.return %75, %73, %76, %b70 : tensor<i32>, tensor<1xf32>, tensor<6xf32>, tensor<6xf32>
}) : (tensor<i32>, tensor<1xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<i32>, tensor<1xf32>, tensor<6xf32>, tensor<6xf32>)
%78:2 = chlo.top_k(%a0, k = 2) : tensor<6xf32> -> (tensor<2xf32>, tensor<2xi32>)
return %36#1, %54#2, %21#1, %77#2, %78#0, %78#1 : tensor<6xf32>, tensor<6xi32>, tensor<i32>, tensor<6xf32>, tensor<2xf32>, tensor<2xi32>
}
}
