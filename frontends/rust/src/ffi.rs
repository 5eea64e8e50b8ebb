//! The declarations of `fxflow.h`.
#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_int, c_void};

pub const MAX_RANK: usize = 16;

#[repr(C)]
pub struct fx_runtime(c_void);
#[repr(C)]
pub struct fx_model(c_void);
#[repr(C)]
pub struct fx_buffer(c_void);

/// The dtype of an array, with its number in `fxflow.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Dtype {
    Bool = 1, I8, I16, I32, I64, U8, U16, U32, U64, F16, F32, F64, Bf16, C64, C128,
    F8E5M2, F8E4M3FN, F8E4M3B11FNUZ, F8E5M2FNUZ, F8E4M3FNUZ, I4, U4,
    F8E4M3 = 26, F8E3M4, F8E8M0FNU, F4E2M1FN,
}

impl Dtype {
    /// The bytes of an element.
    pub fn size(self) -> usize {
        use Dtype::*;
        match self {
            C128 => 16,
            I64 | U64 | F64 | C64 => 8,
            I32 | U32 | F32 => 4,
            I16 | U16 | F16 | Bf16 => 2,
            _ => 1,
        }
    }
}

#[repr(C)]
pub struct fx_type {
    pub name: *const c_char,
    pub type_: *const c_char,
    pub dtype: c_int,
    pub rank: c_int,
    pub dims: *const i64,
    pub bytes: usize,
}

#[repr(C)]
pub struct fx_array {
    pub name: *const c_char,
    pub dtype: c_int,
    pub rank: c_int,
    pub dims: [i64; MAX_RANK],
    pub data: *mut c_void,
    pub buffer: *mut fx_buffer,
}

extern "C" {
    pub fn fx_error() -> *const c_char;
    pub fn fx_error_status() -> c_int;
    pub fn fx_open_with(
        plugin: *const c_char,
        options: *const *const c_char,
        count: usize,
    ) -> *mut fx_runtime;
    pub fn fx_close(runtime: *mut fx_runtime);
    pub fn fx_platform(runtime: *const fx_runtime) -> *const c_char;
    pub fn fx_device_count(runtime: *const fx_runtime) -> c_int;
    pub fn fx_load(runtime: *mut fx_runtime, path: *const c_char, device: c_int) -> *mut fx_model;
    pub fn fx_compile(model: *mut fx_model, function: *const c_char) -> c_int;
    pub fn fx_free(model: *mut fx_model);
    pub fn fx_function_count(model: *const fx_model) -> c_int;
    pub fn fx_function_name(model: *const fx_model, index: c_int) -> *const c_char;
    pub fn fx_param_count(model: *const fx_model) -> c_int;
    pub fn fx_param(model: *const fx_model, index: c_int) -> *const fx_type;
    pub fn fx_input_count(model: *const fx_model, function: *const c_char) -> c_int;
    pub fn fx_input(model: *const fx_model, f: *const c_char, index: c_int) -> *const fx_type;
    pub fn fx_output_count(model: *const fx_model, function: *const c_char) -> c_int;
    pub fn fx_output(model: *const fx_model, f: *const c_char, index: c_int) -> *const fx_type;
    pub fn fx_call(
        model: *mut fx_model,
        function: *const c_char,
        inputs: *const fx_array,
        input_count: usize,
        outputs: *mut fx_array,
        output_count: usize,
    ) -> c_int;
    pub fn fx_wait(model: *mut fx_model) -> c_int;
    pub fn fx_get_param(model: *mut fx_model, array: *mut fx_array) -> c_int;
    pub fn fx_set_param(model: *mut fx_model, array: *const fx_array) -> c_int;
    pub fn fx_save(model: *mut fx_model, path: *const c_char) -> c_int;
}
