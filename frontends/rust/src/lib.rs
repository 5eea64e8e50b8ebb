//! Calls and trains programs that fxflow exported, over the C front end.
//!
//! ```no_run
//! use fxflow::{Model, Runtime, In, Out};
//! # fn main() -> fxflow::Result<()> {
//! let runtime = Runtime::open(None)?; // $FXFLOW_PJRT_PLUGIN
//! let mut model = Model::load(&runtime, "model.fx", 0)?;
//! let (x, y, mut loss) = ([1f32; 24], [0f32; 8], [0f32]);
//! model.call(
//!     "step",
//!     &[In::new("x", &[8, 3], &x), In::new("y", &[8], &y)],
//!     &mut [Out::new("output.loss", &[], &mut loss)],
//! )?;
//! model.save("model.fx")?;
//! # Ok(())
//! # }
//! ```
//!
//! A model belongs to one thread at a time, and borrows its runtime.

mod ffi;

use std::ffi::{CStr, CString};
use std::fmt;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub use ffi::Dtype;

/// What went wrong, as the C front end says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A name, a dtype or a shape is not the function's.
    BadArgument(String),
    /// The file is missing, damaged, or of another version or platform.
    BadFile(String),
    /// The plug-in is missing or of another version.
    BadPlugin(String),
    /// The runtime reports an error.
    Failed(String),
    /// There is not enough memory.
    NoMemory(String),
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The message.
    pub fn text(&self) -> &str {
        match self {
            Self::BadArgument(t) | Self::BadFile(t) | Self::BadPlugin(t) => t,
            Self::Failed(t) | Self::NoMemory(t) => t,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Error {}

fn text(pointer: *const std::os::raw::c_char) -> String {
    // SAFETY: the C front end returns strings that end with zero.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

fn last(status: i32) -> Error {
    // SAFETY: the text belongs to this thread and is copied at once.
    let said = text(unsafe { ffi::fx_error() });
    match status {
        1 => Error::BadArgument(said),
        2 => Error::BadFile(said),
        3 => Error::BadPlugin(said),
        5 => Error::NoMemory(said),
        _ => Error::Failed(said),
    }
}

/// The error of a function that returned no object.
fn why() -> Error {
    last(unsafe { ffi::fx_error_status() })
}

fn check(status: i32) -> Result<()> {
    if status == 0 { Ok(()) } else { Err(last(status)) }
}

fn c_path(path: &Path) -> Result<CString> {
    let bytes = path.as_os_str().as_bytes(); // they need not be UTF-8
    CString::new(bytes).map_err(|_| Error::BadArgument(format!("{path:?} has a zero byte")))
}

fn c_string(name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Error::BadArgument(format!("{name:?} has a zero byte")))
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that arrays can have.
pub trait Element: Copy + sealed::Sealed {
    /// Its dtype.
    const DTYPE: Dtype;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust { const DTYPE: Dtype = Dtype::$dtype; }
    )*};
}

elements!(
    i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32,
    u64 => U64, f32 => F32, f64 => F64,
);

/// An argument of a call: a name, a shape, and elements in row-major order.
///
/// `Bytes` of the other dtypes (`bool`, `bf16`, `c64`, …) are given by `In::raw`.
pub struct In<'a> {
    name: String,
    shape: Vec<i64>,
    dtype: Dtype,
    count: usize,
    data: *const u8,
    _data: PhantomData<&'a [u8]>,
}

/// A result of a call that the caller wants, and the memory for it.
pub struct Out<'a> {
    given: In<'a>,
    _data: PhantomData<&'a mut [u8]>,
}

impl<'a> In<'a> {
    /// An argument; its shape is checked when it is used.
    pub fn new<T: Element>(name: &str, shape: &[usize], data: &'a [T]) -> Self {
        let data_ = data.as_ptr().cast();
        Self::of(name, shape, T::DTYPE, data.len(), data_)
    }

    /// An argument of any dtype, as bytes.
    pub fn raw(name: &str, shape: &[usize], dtype: Dtype, bytes: &'a [u8]) -> Self {
        let count = bytes.len() / dtype.size();
        Self::of(name, shape, dtype, count, bytes.as_ptr())
    }

    fn of(name: &str, shape: &[usize], dtype: Dtype, count: usize, data: *const u8) -> Self {
        let shape = shape.iter().map(|&n| n as i64).collect();
        Self { name: name.into(), shape, dtype, count, data, _data: PhantomData }
    }

    fn raw_array(&self, name: &CStr) -> Result<ffi::fx_array> {
        let expected = self.shape.iter().try_fold(1i64, |count, &n| count.checked_mul(n));
        if self.shape.len() > ffi::MAX_RANK || expected != Some(self.count as i64) {
            return Err(Error::BadArgument(format!(
                "{}: the shape {:?} has {} elements, the slice has {}",
                self.name,
                self.shape,
                expected.map_or("too many".to_string(), |n| n.to_string()),
                self.count
            )));
        }
        let mut dims = [0; ffi::MAX_RANK];
        dims[..self.shape.len()].copy_from_slice(&self.shape);
        Ok(ffi::fx_array {
            name: name.as_ptr(),
            dtype: self.dtype as i32,
            rank: self.shape.len() as i32,
            dims,
            data: self.data as *mut _,
            buffer: std::ptr::null_mut(),
        })
    }
}

impl<'a> Out<'a> {
    /// Memory for a result.
    pub fn new<T: Element>(name: &str, shape: &[usize], data: &'a mut [T]) -> Self {
        let count = data.len();
        let given = In::of(name, shape, T::DTYPE, count, data.as_mut_ptr().cast());
        Self { given, _data: PhantomData }
    }

    /// Memory for a result of any dtype, as bytes.
    pub fn raw(name: &str, shape: &[usize], dtype: Dtype, bytes: &'a mut [u8]) -> Self {
        let count = bytes.len() / dtype.size();
        let given = In::of(name, shape, dtype, count, bytes.as_mut_ptr());
        Self { given, _data: PhantomData }
    }
}

/// The type of an argument, a result or a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    pub name: String,
    /// As text: `f32[3,4]`.
    pub text: String,
    pub shape: Vec<usize>,
    pub bytes: usize,
}

/// A plug-in and its devices.
pub struct Runtime(*mut ffi::fx_runtime);

// SAFETY: PJRT clients may be used by several threads.
unsafe impl Send for Runtime {}
unsafe impl Sync for Runtime {}

impl Runtime {
    /// Opens a plug-in; `None`: the one that `FXFLOW_PJRT_PLUGIN` names.
    pub fn open(plugin: Option<&str>) -> Result<Self> {
        Self::open_with(plugin, &[])
    }

    /// Opens a plug-in with options of its own, such as `cpu_device_count=4`.
    pub fn open_with(plugin: Option<&str>, options: &[&str]) -> Result<Self> {
        let name = plugin.map(c_string).transpose()?;
        let pointer = name.as_ref().map_or(std::ptr::null(), |n| n.as_ptr());
        let texts = options.iter().map(|text| c_string(text)).collect::<Result<Vec<_>>>()?;
        let given: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        // SAFETY: `pointer` is null or a string that lives long enough, like the options.
        let found = unsafe { ffi::fx_open_with(pointer, given.as_ptr(), given.len()) };
        if found.is_null() { Err(why()) } else { Ok(Self(found)) }
    }

    /// `cpu`, `cuda`, `tpu`.
    pub fn platform(&self) -> String {
        text(unsafe { ffi::fx_platform(self.0) })
    }

    /// The number of devices.
    pub fn device_count(&self) -> usize {
        unsafe { ffi::fx_device_count(self.0) as usize }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // SAFETY: models borrow the runtime, so none is left.
        unsafe { ffi::fx_close(self.0) }
    }
}

/// A file on a device: functions, and the state that they share.
pub struct Model<'r> {
    raw: *mut ffi::fx_model,
    _runtime: PhantomData<&'r Runtime>,
}

// SAFETY: a model may move to another thread; `&mut self` keeps calls apart.
unsafe impl Send for Model<'_> {}

impl<'r> Model<'r> {
    /// Loads a file on a device.
    pub fn load(runtime: &'r Runtime, path: impl AsRef<Path>, device: usize) -> Result<Self> {
        let path = c_path(path.as_ref())?;
        let device = i32::try_from(device).unwrap_or(i32::MAX);
        let raw = unsafe { ffi::fx_load(runtime.0, path.as_ptr(), device) };
        if raw.is_null() { Err(why()) } else { Ok(Self { raw, _runtime: PhantomData }) }
    }

    /// The names of the functions.
    pub fn functions(&self) -> Vec<String> {
        let count = unsafe { ffi::fx_function_count(self.raw) };
        (0..count).map(|i| text(unsafe { ffi::fx_function_name(self.raw, i) })).collect()
    }

    /// The arguments of a function, without the parameters.
    pub fn inputs(&self, function: &str) -> Result<Vec<Type>> {
        let name = c_string(function)?;
        let count = unsafe { ffi::fx_input_count(self.raw, name.as_ptr()) };
        types(count, |i| unsafe { ffi::fx_input(self.raw, name.as_ptr(), i) })
    }

    /// The results of a function, without the parameters.
    pub fn outputs(&self, function: &str) -> Result<Vec<Type>> {
        let name = c_string(function)?;
        let count = unsafe { ffi::fx_output_count(self.raw, name.as_ptr()) };
        types(count, |i| unsafe { ffi::fx_output(self.raw, name.as_ptr(), i) })
    }

    /// The parameters.
    pub fn params(&self) -> Vec<Type> {
        let count = unsafe { ffi::fx_param_count(self.raw) };
        types(count, |i| unsafe { ffi::fx_param(self.raw, i) }).unwrap_or_default()
    }

    /// Compiles a function, which its first call does otherwise.
    pub fn compile(&mut self, function: &str) -> Result<()> {
        let name = c_string(function)?;
        check(unsafe { ffi::fx_compile(self.raw, name.as_ptr()) })
    }

    /// Calls a function. A function that returns new parameters replaces them.
    pub fn call(&mut self, function: &str, inputs: &[In], outputs: &mut [Out]) -> Result<()> {
        let name = c_string(function)?;
        let (_names, given) = arrays(inputs.iter())?;
        let (_others, mut wanted) = arrays(outputs.iter().map(|out| &out.given))?;
        // SAFETY: names and memory outlive the call, and their sizes were checked.
        check(unsafe {
            ffi::fx_call(
                self.raw,
                name.as_ptr(),
                given.as_ptr(),
                given.len(),
                wanted.as_mut_ptr(),
                wanted.len(),
            )
        })
    }

    /// Waits until the parameters are computed.
    pub fn wait(&mut self) -> Result<()> {
        check(unsafe { ffi::fx_wait(self.raw) })
    }

    /// Reads a parameter.
    pub fn get_param(&mut self, out: &mut Out) -> Result<()> {
        let name = c_string(&out.given.name)?;
        let mut array = out.given.raw_array(&name)?;
        check(unsafe { ffi::fx_get_param(self.raw, &mut array) })
    }

    /// Replaces a parameter.
    pub fn set_param(&mut self, value: &In) -> Result<()> {
        let name = c_string(&value.name)?;
        let array = value.raw_array(&name)?;
        check(unsafe { ffi::fx_set_param(self.raw, &array) })
    }

    /// Writes the file with the present parameters, atomically.
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        check(unsafe { ffi::fx_save(self.raw, path.as_ptr()) })
    }
}

impl Drop for Model<'_> {
    fn drop(&mut self) {
        unsafe { ffi::fx_free(self.raw) }
    }
}

fn arrays<'a, 'b: 'a>(
    given: impl Iterator<Item = &'a In<'b>>,
) -> Result<(Vec<CString>, Vec<ffi::fx_array>)> {
    let (mut names, mut found) = (Vec::new(), Vec::new());
    for array in given {
        let name = c_string(&array.name)?;
        found.push(array.raw_array(&name)?);
        names.push(name); // its memory does not move
    }
    Ok((names, found))
}

fn types(count: i32, at: impl Fn(i32) -> *const ffi::fx_type) -> Result<Vec<Type>> {
    if count < 0 {
        return Err(last(1));
    }
    Ok((0..count)
        .map(|i| {
            // SAFETY: the model lists `count` types, which live as long as it does.
            let found = unsafe { &*at(i) };
            let dims = if found.rank == 0 {
                &[]
            } else {
                unsafe { std::slice::from_raw_parts(found.dims, found.rank as usize) }
            };
            Type {
                name: text(found.name),
                text: text(found.type_),
                shape: dims.iter().map(|&n| n as usize).collect(),
                bytes: found.bytes,
            }
        })
        .collect())
}
