module @f0 {
func.func public @main(%a0: tensor<f32>, %a1: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) {
%0 = stablehlo.constant dense<0> : tensor<i32>
%1 = stablehlo.constant dense<0.0> : tensor<4xf32>
%18:3 = "stablehlo.while"(%0, %a0, %1) ({
^bb0(%b2: tensor<i32>, %b3: tensor<f32>, %b4: tensor<4xf32>):
%5 = stablehlo.constant dense<4> : tensor<i32>
%6 = stablehlo.compare LT, %b2, %5 : (tensor<i32>, tensor<i32>) -> tensor<i1>
stablehlo.return %6 : tensor<i1>
}, {
^bb0(%b7: tensor<i32>, %b8: tensor<f32>, %b9: tensor<4xf32>):
%10 = stablehlo.constant dense<1> : tensor<i32>
%11 = stablehlo.dynamic_slice %a1, %b7, sizes = [1] : (tensor<4xf32>, tensor<i32>) -> tensor<1xf32>
%12 = stablehlo.reshape %11 : (tensor<1xf32>) -> tensor<f32>
%13 = stablehlo.multiply %b8, %12 : tensor<f32>
%14 = stablehlo.add %b8, %12 : tensor<f32>
%15 = stablehlo.reshape %14 : (tensor<f32>) -> tensor<1xf32>
%16 = stablehlo.dynamic_update_slice %b9, %15, %b7 : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
%17 = stablehlo.add %b7, %10 : tensor<i32>
stablehlo.return %17, %13, %16 : tensor<i32>, tensor<f32>, tensor<4xf32>
}) : (tensor<i32>, tensor<f32>, tensor<4xf32>) -> (tensor<i32>, tensor<f32>, tensor<4xf32>)
return %18#1, %18#2 : tensor<f32>, tensor<4xf32>
}
}
