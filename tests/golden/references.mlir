module @f0 {
func.func public @main(%a0: tensor<3xf32>, %a1: tensor<i32>) -> (tensor<3xf32>, tensor<i32>) {
%0 = stablehlo.constant dense<0.0> : tensor<f32>
%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3xf32>
%2 = stablehlo.constant dense<0> : tensor<i32>
%3 = stablehlo.constant dense<0> : tensor<i32>
%49:3 = "stablehlo.while"(%1, %2, %3) ({
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
%16 = stablehlo.constant dense<0> : tensor<i32>
%17 = stablehlo.constant dense<2> : tensor<i32>
%18 = stablehlo.clamp %16, %15, %17 : tensor<i32>
%19 = stablehlo.dynamic_slice %b8, %18, sizes = [1] : (tensor<3xf32>, tensor<i32>) -> tensor<1xf32>
%20 = stablehlo.reshape %19 : (tensor<1xf32>) -> tensor<f32>
%21 = stablehlo.constant dense<0> : tensor<i32>
%22 = stablehlo.compare LT, %b10, %21, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%23 = stablehlo.constant dense<3> : tensor<i32>
%24 = stablehlo.add %b10, %23 : tensor<i32>
%25 = stablehlo.select %22, %24, %b10 : tensor<i1>, tensor<i32>
%26 = stablehlo.constant dense<0> : tensor<i32>
%27 = stablehlo.constant dense<2> : tensor<i32>
%28 = stablehlo.clamp %26, %25, %27 : tensor<i32>
%29 = stablehlo.dynamic_slice %a0, %28, sizes = [1] : (tensor<3xf32>, tensor<i32>) -> tensor<1xf32>
%30 = stablehlo.reshape %29 : (tensor<1xf32>) -> tensor<f32>
%31 = stablehlo.add %20, %30 : tensor<f32>
%32 = stablehlo.constant dense<0> : tensor<i32>
%33 = stablehlo.compare LT, %b10, %32, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%34 = stablehlo.constant dense<3> : tensor<i32>
%35 = stablehlo.add %b10, %34 : tensor<i32>
%36 = stablehlo.select %33, %35, %b10 : tensor<i1>, tensor<i32>
%37 = stablehlo.broadcast_in_dim %36, dims = [] : (tensor<i32>) -> tensor<1xi32>
%40 = "stablehlo.scatter"(%b8, %37, %31) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>, unique_indices = true}> ({
^bb0(%b38: tensor<f32>, %b39: tensor<f32>):

stablehlo.return %b39 : tensor<f32>
}) : (tensor<3xf32>, tensor<1xi32>, tensor<f32>) -> tensor<3xf32>
%41 = stablehlo.constant dense<1> : tensor<i32>
%42 = stablehlo.compare GT, %b10, %41, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%43 = stablehlo.convert %42 : (tensor<i1>) -> tensor<i32>
%46 = "stablehlo.case"(%43) ({

stablehlo.return %b9 : tensor<i32>
}, {
%44 = stablehlo.constant dense<1> : tensor<i32>
%45 = stablehlo.add %b9, %44 : tensor<i32>
stablehlo.return %45 : tensor<i32>
}) : (tensor<i32>) -> (tensor<i32>)
%47 = stablehlo.constant dense<1> : tensor<i32>
%48 = stablehlo.add %b10, %47 : tensor<i32>
stablehlo.return %40, %46, %48 : tensor<3xf32>, tensor<i32>, tensor<i32>
}) : (tensor<3xf32>, tensor<i32>, tensor<i32>) -> (tensor<3xf32>, tensor<i32>, tensor<i32>)
return %49#0, %49#1 : tensor<3xf32>, tensor<i32>
}
}
