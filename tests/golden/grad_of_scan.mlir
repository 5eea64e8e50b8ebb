module @f0 {
func.func public @main(%a0: tensor<f32>, %a1: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) {
%0 = stablehlo.constant dense<0> : tensor<i32>
%1 = stablehlo.constant dense<0.0> : tensor<4xf32>
%2 = stablehlo.constant dense<0.0> : tensor<4xf32>
%24:4 = "stablehlo.while"(%0, %a0, %1, %2) ({
^bb0(%b3: tensor<i32>, %b4: tensor<f32>, %b5: tensor<4xf32>, %b6: tensor<4xf32>):
%7 = stablehlo.constant dense<4> : tensor<i32>
%8 = stablehlo.compare LT, %b3, %7 : (tensor<i32>, tensor<i32>) -> tensor<i1>
stablehlo.return %8 : tensor<i1>
}, {
^bb0(%b9: tensor<i32>, %b10: tensor<f32>, %b11: tensor<4xf32>, %b12: tensor<4xf32>):
%13 = stablehlo.constant dense<1> : tensor<i32>
%14 = stablehlo.dynamic_slice %a1, %b9, sizes = [1] : (tensor<4xf32>, tensor<i32>) -> tensor<1xf32>
%15 = stablehlo.reshape %14 : (tensor<1xf32>) -> tensor<f32>
%16 = stablehlo.multiply %b10, %15 : tensor<f32>
%17 = stablehlo.sine %16 : tensor<f32>
%18 = stablehlo.cosine %16 : tensor<f32>
%19 = stablehlo.reshape %b10 : (tensor<f32>) -> tensor<1xf32>
%20 = stablehlo.dynamic_update_slice %b11, %19, %b9 : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
%21 = stablehlo.reshape %18 : (tensor<f32>) -> tensor<1xf32>
%22 = stablehlo.dynamic_update_slice %b12, %21, %b9 : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
%23 = stablehlo.add %b9, %13 : tensor<i32>
stablehlo.return %23, %17, %20, %22 : tensor<i32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>
}) : (tensor<i32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<i32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>)
%25 = stablehlo.constant dense<1.0> : tensor<f32>
%26 = stablehlo.constant dense<0> : tensor<i32>
%27 = stablehlo.constant dense<0.0> : tensor<4xf32>
%51:3 = "stablehlo.while"(%26, %25, %27) ({
^bb0(%b28: tensor<i32>, %b29: tensor<f32>, %b30: tensor<4xf32>):
%31 = stablehlo.constant dense<4> : tensor<i32>
%32 = stablehlo.compare LT, %b28, %31 : (tensor<i32>, tensor<i32>) -> tensor<i1>
stablehlo.return %32 : tensor<i1>
}, {
^bb0(%b33: tensor<i32>, %b34: tensor<f32>, %b35: tensor<4xf32>):
%36 = stablehlo.constant dense<1> : tensor<i32>
%37 = stablehlo.constant dense<3> : tensor<i32>
%38 = stablehlo.subtract %37, %b33 : tensor<i32>
%39 = stablehlo.dynamic_slice %a1, %38, sizes = [1] : (tensor<4xf32>, tensor<i32>) -> tensor<1xf32>
%40 = stablehlo.reshape %39 : (tensor<1xf32>) -> tensor<f32>
%41 = stablehlo.dynamic_slice %24#2, %38, sizes = [1] : (tensor<4xf32>, tensor<i32>) -> tensor<1xf32>
%42 = stablehlo.reshape %41 : (tensor<1xf32>) -> tensor<f32>
%43 = stablehlo.dynamic_slice %24#3, %38, sizes = [1] : (tensor<4xf32>, tensor<i32>) -> tensor<1xf32>
%44 = stablehlo.reshape %43 : (tensor<1xf32>) -> tensor<f32>
%45 = stablehlo.multiply %b34, %44 : tensor<f32>
%46 = stablehlo.multiply %45, %42 : tensor<f32>
%47 = stablehlo.multiply %45, %40 : tensor<f32>
%48 = stablehlo.reshape %46 : (tensor<f32>) -> tensor<1xf32>
%49 = stablehlo.dynamic_update_slice %b35, %48, %38 : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
%50 = stablehlo.add %b33, %36 : tensor<i32>
stablehlo.return %50, %47, %49 : tensor<i32>, tensor<f32>, tensor<4xf32>
}) : (tensor<i32>, tensor<f32>, tensor<4xf32>) -> (tensor<i32>, tensor<f32>, tensor<4xf32>)
return %51#1, %51#2 : tensor<f32>, tensor<4xf32>
}
}
