module @f0 {
func.func public @main(%a0: tensor<3xf32>) -> (tensor<3xf32>) {
%0 = stablehlo.iota dim = 0 : tensor<5xi32>
%1 = stablehlo.constant dense<0> : tensor<i32>
%15:2 = "stablehlo.while"(%1, %a0) ({
^bb0(%b2: tensor<i32>, %b3: tensor<3xf32>):
%4 = stablehlo.constant dense<5> : tensor<i32>
%5 = stablehlo.compare LT, %b2, %4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
stablehlo.return %5 : tensor<i1>
}, {
^bb0(%b6: tensor<i32>, %b7: tensor<3xf32>):
%8 = stablehlo.constant dense<1> : tensor<i32>
%9 = stablehlo.dynamic_slice %0, %b6, sizes = [1] : (tensor<5xi32>, tensor<i32>) -> tensor<1xi32>
%10 = stablehlo.reshape %9 : (tensor<1xi32>) -> tensor<i32>
%11 = stablehlo.convert %10 : (tensor<i32>) -> tensor<f32>
%12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<3xf32>
%13 = stablehlo.add %b7, %12 : tensor<3xf32>
%14 = stablehlo.add %b6, %8 : tensor<i32>
stablehlo.return %14, %13 : tensor<i32>, tensor<3xf32>
}) : (tensor<i32>, tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>)
return %15#1 : tensor<3xf32>
}
}
