//! What C hands over: handles, texts, arrays, and structures of any version.

use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;
use std::ptr;
use std::slice;

use super::code::PeltonCode;
use super::error::Failure;

/// The handle behind `pointer`.
///
/// # Safety
/// `pointer` is NULL, or points to a `T` that lives for `'a`.
pub(super) unsafe fn handle<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// Where a result goes; it is set to NULL at first.
///
/// # Safety
/// `pointer` is NULL, or can be written for `'a`.
pub(super) unsafe fn out<'a, T>(
    pointer: *mut *mut T,
    name: &str,
) -> Result<&'a mut *mut T, Failure> {
    // SAFETY: the caller's promise.
    let place = unsafe { pointer.as_mut() }.ok_or_else(|| null(name))?;
    *place = ptr::null_mut();
    Ok(place)
}

/// Frees what `Box::into_raw` gave out.
///
/// # Safety
/// `pointer` is NULL, or comes from `Box::into_raw` and is not used again.
pub(super) unsafe fn release<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: the caller's promise.
        super::error::shielded((), || drop(unsafe { Box::from_raw(pointer) }));
    }
}

/// A text, if there is one.
///
/// # Safety
/// `pointer` is NULL, or points to a text with a NUL at its end that lives for `'a`.
pub(super) unsafe fn text<'a>(
    pointer: *const c_char,
    name: &str,
) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(Some).map_err(|error| {
        let place = error.valid_up_to();
        Failure::new(PeltonCode::NotUtf8, format!("{name} is not UTF-8 at byte {place}"))
    })
}

/// The items of an array, none of which may be NULL.
///
/// # Safety
/// `pointer` is NULL, or points to `count` pointers, each as for [`text`].
pub(super) unsafe fn texts<'a>(
    pointer: *const *const c_char,
    count: usize,
    name: &str,
) -> Result<Vec<&'a str>, Failure> {
    // SAFETY: the caller's promise.
    let items = unsafe { array(pointer, count, name) }?;
    let items = items.iter().enumerate();
    items
        .map(|(index, item)| {
            let name = format!("{name}[{index}]");
            // SAFETY: the caller's promise.
            unsafe { text(*item, &name) }?.ok_or_else(|| null(&name))
        })
        .collect()
}

/// An array of `count` items.
///
/// # Safety
/// `pointer` is NULL, or points to `count` items that live for `'a`.
pub(super) unsafe fn array<'a, T>(
    pointer: *const T,
    count: usize,
    name: &str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(null(name));
    }
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::usage(format!("{name}: no array has {count} items")));
    }
    // SAFETY: not NULL, no longer than memory is, and the caller's promise.
    Ok(unsafe { slice::from_raw_parts(pointer, count) })
}

/// `text` for C: without its NULs, which only pelton's own faults could put there.
pub(super) fn c_text(text: &str) -> CString {
    let bytes = text.bytes().filter(|byte| *byte != 0).collect::<Vec<u8>>();
    CString::new(bytes).unwrap_or_default()
}

/// Refuses a reserved field that is set: a newer header may give it a meaning.
pub(super) fn unused(name: &str, is_zero: bool) -> Result<(), Failure> {
    if is_zero {
        return Ok(());
    }
    let why = format!("{name} is set, which pelton {} does not know", env!("CARGO_PKG_VERSION"));
    Err(Failure::new(PeltonCode::StructSize, why))
}

pub(super) fn null(name: &str) -> Failure {
    Failure::new(PeltonCode::NullArgument, format!("{name} is NULL"))
}

/// A structure of the header that begins with `struct_size`.
///
/// # Safety
/// `repr(C)`, the first field is a `usize`, every bit pattern is a value, and zeros are the
/// defaults.
pub(super) unsafe trait Versioned: Copy {
    /// Its name in C.
    const NAME: &str;
}

/// The defaults.
pub(super) fn zeros<T: Versioned>() -> T {
    // SAFETY: `Versioned` says that zeros are a value.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// What the caller says, in this library's version of the structure: what an older program's does
/// not have is zero, and what a newer one's has besides must be. `None` for NULL.
///
/// # Safety
/// `pointer` is NULL, or points to as many bytes as the `struct_size` there says.
pub(super) unsafe fn read<T: Versioned>(pointer: *const T) -> Result<Option<T>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    let wrong = |why: String| Failure::new(PeltonCode::StructSize, why);
    // SAFETY: the caller's promise; the first field is the size.
    let size = unsafe { pointer.cast::<usize>().read_unaligned() };
    let known = size_of::<T>();
    let name = T::NAME;
    // No structure is that large: the field was not set.
    if !(size_of::<usize>()..=LARGEST).contains(&size) {
        return Err(wrong(format!(
            "{name}.struct_size is {size}; set it to sizeof(struct {name}), which is {known} here"
        )));
    }
    let mut value = MaybeUninit::<T>::zeroed();
    let bytes = pointer.cast::<u8>();
    // SAFETY: both have that many bytes, and they are two different places.
    unsafe { ptr::copy_nonoverlapping(bytes, value.as_mut_ptr().cast::<u8>(), size.min(known)) };
    // SAFETY: the caller's promise.
    let is_new = |at: &usize| unsafe { *bytes.add(*at) } != 0;
    if let Some(at) = (known..size).find(is_new) {
        return Err(wrong(format!(
            "{name} sets a field at byte {at}, which pelton {} does not know",
            env!("CARGO_PKG_VERSION")
        )));
    }
    // SAFETY: every bit pattern is a value.
    Ok(Some(unsafe { value.assume_init() }))
}

/// Tells the caller `value`, as much of it as its version of the structure has.
///
/// # Safety
/// `pointer` is NULL, or points to as many writable bytes as the `struct_size` there says.
pub(super) unsafe fn write<T: Versioned>(pointer: *mut T, value: &T) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let Some(before) = (unsafe { read_size(pointer) }) else { return Err(null(T::NAME)) };
    let (size, known) = (before, size_of::<T>());
    if !(size_of::<usize>()..=LARGEST).contains(&size) {
        let name = T::NAME;
        let why = format!("{name}.struct_size is {size}; set it to sizeof(struct {name})");
        return Err(Failure::new(PeltonCode::StructSize, why));
    }
    let first = size_of::<usize>();
    let (to, from) = (pointer.cast::<u8>(), ptr::from_ref(value).cast::<u8>());
    // SAFETY: what is written lies behind the size and within it, and what is read within `value`.
    unsafe {
        ptr::write_bytes(to.add(first), 0, size - first);
        ptr::copy_nonoverlapping(from.add(first), to.add(first), size.min(known) - first);
    }
    Ok(())
}

/// More than any version of any structure will have.
const LARGEST: usize = 64 * 1024;

/// # Safety
/// As for [`write`].
unsafe fn read_size<T: Versioned>(pointer: *mut T) -> Option<usize> {
    // SAFETY: the caller's promise; the first field is the size.
    (!pointer.is_null()).then(|| unsafe { pointer.cast::<usize>().read_unaligned() })
}
