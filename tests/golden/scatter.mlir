module @f0 {
func.func public @main(%a0: tensor<5xf32>, %a1: tensor<3xi32>, %a2: tensor<3xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
%0 = stablehlo.constant dense<0> : tensor<3xi32>
%1 = stablehlo.compare LT, %a1, %0, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
%2 = stablehlo.constant dense<5> : tensor<3xi32>
%3 = stablehlo.add %a1, %2 : tensor<3xi32>
%4 = stablehlo.select %1, %3, %a1 : tensor<3xi1>, tensor<3xi32>
%5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
%9 = "stablehlo.scatter"(%a0, %5, %a2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
^bb0(%b6: tensor<f32>, %b7: tensor<f32>):
%8 = stablehlo.add %b6, %b7 : tensor<f32>
stablehlo.return %8 : tensor<f32>
}) : (tensor<5xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<5xf32>
%10 = stablehlo.constant dense<0.0> : tensor<2xf32>
%11 = stablehlo.constant dense<2> : tensor<i32>
%12 = stablehlo.dynamic_update_slice %a0, %10, %11 : (tensor<5xf32>, tensor<2xf32>, tensor<i32>) -> tensor<5xf32>
%13 = stablehlo.optimization_barrier %12 : tensor<5xf32>
return %9, %13 : tensor<5xf32>, tensor<5xf32>
}
}
