module @f0 {
func.func public @main(%a0: tensor<3xf32>, %a1: tensor<i32>) -> (tensor<3xf32>, tensor<i32>) {
%0 = stablehlo.constant dense<0.0> : tensor<f32>
%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3xf32>
%2 = stablehlo.constant dense<0> : tensor<i32>
%3 = stablehlo.constant dense<0> : tensor<i32>
%43:3 = "stablehlo.while"(%1, %2, %3) ({
^bb0(%b4: tensor<3xf32>, %b5: tensor<i32>, %b6: tensor<i32>):
%7 = stablehlo.compare LT, %b6, %a1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
stablehlo.return %7 : tensor<i1>
}, {
^bb0(%b8: tensor<3xf32>, %b9: tensor<i32>, %b10: tensor<i32>):
%11 = stablehlo.constant dense<0> : tensor<i32>
%12 = stablehlo.compare LT, %b10, %11, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%13 = stablehlo.constant dense<3> : tensor<i32>
%14 = stablehlo.add %b10, %13 : tensor<i32>
%15 = stablehlo.select %12, %14, %b10 : tensor<i1>, tensor<i32>
%16 = stablehlo.dynamic_slice %b8, %15, sizes = [1] : (tensor<3xf32>, tensor<i32>) -> tensor<1xf32>
%17 = stablehlo.reshape %16 : (tensor<1xf32>) -> tensor<f32>
%18 = stablehlo.constant dense<0> : tensor<i32>
%19 = stablehlo.compare LT, %b10, %18, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%20 = stablehlo.constant dense<3> : tensor<i32>
%21 = stablehlo.add %b10, %20 : tensor<i32>
%22 = stablehlo.select %19, %21, %b10 : tensor<i1>, tensor<i32>
%23 = stablehlo.dynamic_slice %a0, %22, sizes = [1] : (tensor<3xf32>, tensor<i32>) -> tensor<1xf32>
%24 = stablehlo.reshape %23 : (tensor<1xf32>) -> tensor<f32>
%25 = stablehlo.add %17, %24 : tensor<f32>
%26 = stablehlo.constant dense<0> : tensor<i32>
%27 = stablehlo.compare LT, %b10, %26, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%28 = stablehlo.constant dense<3> : tensor<i32>
%29 = stablehlo.add %b10, %28 : tensor<i32>
%30 = stablehlo.select %27, %29, %b10 : tensor<i1>, tensor<i32>
%31 = stablehlo.broadcast_in_dim %30, dims = [] : (tensor<i32>) -> tensor<1xi32>
%34 = "stablehlo.scatter"(%b8, %31, %25) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>, unique_indices = true}> ({
^bb0(%b32: tensor<f32>, %b33: tensor<f32>):

stablehlo.return %b33 : tensor<f32>
}) : (tensor<3xf32>, tensor<1xi32>, tensor<f32>) -> tensor<3xf32>
%35 = stablehlo.constant dense<1> : tensor<i32>
%36 = stablehlo.compare GT, %b10, %35, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%37 = stablehlo.convert %36 : (tensor<i1>) -> tensor<i32>
%40 = "stablehlo.case"(%37) ({

stablehlo.return %b9 : tensor<i32>
}, {
%38 = stablehlo.constant dense<1> : tensor<i32>
%39 = stablehlo.add %b9, %38 : tensor<i32>
stablehlo.return %39 : tensor<i32>
}) : (tensor<i32>) -> (tensor<i32>)
%41 = stablehlo.constant dense<1> : tensor<i32>
%42 = stablehlo.add %b10, %41 : tensor<i32>
stablehlo.return %34, %40, %42 : tensor<3xf32>, tensor<i32>, tensor<i32>
}) : (tensor<3xf32>, tensor<i32>, tensor<i32>) -> (tensor<3xf32>, tensor<i32>, tensor<i32>)
return %43#0, %43#1 : tensor<3xf32>, tensor<i32>
}
}
