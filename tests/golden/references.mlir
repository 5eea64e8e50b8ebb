module @f0 {
func.func public @main(%a0: tensor<3xf32>, %a1: tensor<i32>) -> (tensor<3xf32>, tensor<i32>) {
%0 = stablehlo.constant dense<0.0> : tensor<3xf32>
%1 = stablehlo.constant dense<0> : tensor<i32>
%2 = stablehlo.constant dense<0> : tensor<i32>
%48:3 = "stablehlo.while"(%0, %1, %2) ({
^bb0(%b3: tensor<3xf32>, %b4: tensor<i32>, %b5: tensor<i32>):
%6 = stablehlo.compare LT, %b5, %a1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
stablehlo.return %6 : tensor<i1>
}, {
^bb0(%b7: tensor<3xf32>, %b8: tensor<i32>, %b9: tensor<i32>):
%10 = stablehlo.constant dense<0> : tensor<i32>
%11 = stablehlo.compare LT, %b9, %10, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%12 = stablehlo.constant dense<3> : tensor<i32>
%13 = stablehlo.add %b9, %12 : tensor<i32>
%14 = stablehlo.select %11, %13, %b9 : tensor<i1>, tensor<i32>
%15 = stablehlo.constant dense<0> : tensor<i32>
%16 = stablehlo.constant dense<2> : tensor<i32>
%17 = stablehlo.clamp %15, %14, %16 : tensor<i32>
%18 = stablehlo.dynamic_slice %b7, %17, sizes = [1] : (tensor<3xf32>, tensor<i32>) -> tensor<1xf32>
%19 = stablehlo.reshape %18 : (tensor<1xf32>) -> tensor<f32>
%20 = stablehlo.constant dense<0> : tensor<i32>
%21 = stablehlo.compare LT, %b9, %20, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%22 = stablehlo.constant dense<3> : tensor<i32>
%23 = stablehlo.add %b9, %22 : tensor<i32>
%24 = stablehlo.select %21, %23, %b9 : tensor<i1>, tensor<i32>
%25 = stablehlo.constant dense<0> : tensor<i32>
%26 = stablehlo.constant dense<2> : tensor<i32>
%27 = stablehlo.clamp %25, %24, %26 : tensor<i32>
%28 = stablehlo.dynamic_slice %a0, %27, sizes = [1] : (tensor<3xf32>, tensor<i32>) -> tensor<1xf32>
%29 = stablehlo.reshape %28 : (tensor<1xf32>) -> tensor<f32>
%30 = stablehlo.add %19, %29 : tensor<f32>
%31 = stablehlo.constant dense<0> : tensor<i32>
%32 = stablehlo.compare LT, %b9, %31, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%33 = stablehlo.constant dense<3> : tensor<i32>
%34 = stablehlo.add %b9, %33 : tensor<i32>
%35 = stablehlo.select %32, %34, %b9 : tensor<i1>, tensor<i32>
%36 = stablehlo.broadcast_in_dim %35, dims = [] : (tensor<i32>) -> tensor<1xi32>
%39 = "stablehlo.scatter"(%b7, %36, %30) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>, unique_indices = true}> ({
^bb0(%b37: tensor<f32>, %b38: tensor<f32>):

stablehlo.return %b38 : tensor<f32>
}) : (tensor<3xf32>, tensor<1xi32>, tensor<f32>) -> tensor<3xf32>
%40 = stablehlo.constant dense<1> : tensor<i32>
%41 = stablehlo.compare GT, %b9, %40, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%42 = stablehlo.convert %41 : (tensor<i1>) -> tensor<i32>
%45 = "stablehlo.case"(%42) ({

stablehlo.return %b8 : tensor<i32>
}, {
%43 = stablehlo.constant dense<1> : tensor<i32>
%44 = stablehlo.add %b8, %43 : tensor<i32>
stablehlo.return %44 : tensor<i32>
}) : (tensor<i32>) -> (tensor<i32>)
%46 = stablehlo.constant dense<1> : tensor<i32>
%47 = stablehlo.add %b9, %46 : tensor<i32>
stablehlo.return %39, %45, %47 : tensor<3xf32>, tensor<i32>, tensor<i32>
}) : (tensor<3xf32>, tensor<i32>, tensor<i32>) -> (tensor<3xf32>, tensor<i32>, tensor<i32>)
return %48#0, %48#1 : tensor<3xf32>, tensor<i32>
}
}
