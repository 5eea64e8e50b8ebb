module @f0 {
func.func public @main(%a0: tensor<5xf32>, %a1: tensor<3xi32>, %a2: tensor<3xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
%0 = stablehlo.constant dense<0> : tensor<i32>
%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<3xi32>
%2 = stablehlo.compare LT, %a1, %1, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
%3 = stablehlo.constant dense<5> : tensor<i32>
%4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<i32>) -> tensor<3xi32>
%5 = stablehlo.add %a1, %4 : tensor<3xi32>
%6 = stablehlo.select %2, %5, %a1 : tensor<3xi1>, tensor<3xi32>
%7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
%11 = "stablehlo.scatter"(%a0, %7, %a2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
^bb0(%b8: tensor<f32>, %b9: tensor<f32>):
%10 = stablehlo.add %b8, %b9 : tensor<f32>
stablehlo.return %10 : tensor<f32>
}) : (tensor<5xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<5xf32>
%12 = stablehlo.constant dense<0.0> : tensor<f32>
%13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<f32>) -> tensor<2xf32>
%14 = stablehlo.constant dense<2> : tensor<i32>
%15 = stablehlo.dynamic_update_slice %a0, %13, %14 : (tensor<5xf32>, tensor<2xf32>, tensor<i32>) -> tensor<5xf32>
%16 = stablehlo.optimization_barrier %15 : tensor<5xf32>
return %11, %16 : tensor<5xf32>, tensor<5xf32>
}
}
