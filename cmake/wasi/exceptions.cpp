// SPDX-License-Identifier: Apache-2.0
// The part of the C++ ABI that Debian's libc++abi for WebAssembly leaves out: exceptions, and the
// end of thread_local objects. It is for -fwasm-exceptions and one thread. Link it into programs
// that clang compiles for wasm32-wasi.
//
// A throw is an instruction with one operand, here a `flight`. Where handlers of several types may
// catch it, the landing pad calls _Unwind_CallPersonality(), which finds the first that does in the
// function's table, and stores its number.
//
// Functions inside Debian's libc++ still end the program where they would throw, such as
// std::string::at() and std::stoi(). Allocations throw std::bad_alloc by the definitions below.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <typeinfo>

namespace __cxxabiv1 {
/// Types as libc++abi has them: every std::type_info is one, with the virtual functions in this
/// order.
class __shim_type_info : public std::type_info {
 public:
  ~__shim_type_info() override;
  virtual void noop1() const;
  virtual void noop2() const;
  /// Whether a handler of this type catches an object of another; then makes the pointer to the
  /// object one to the handler's type.
  virtual bool can_catch(const __shim_type_info* thrown, void*& object) const = 0;
};
}  // namespace __cxxabiv1

namespace {

using destructor = void*(void*);  // on WebAssembly they return the object

/// Stands before every exception object.
struct alignas(16) object_header {
  const std::type_info* type;
  destructor* destroy;
  std::size_t references;  // flights and std::exception_ptr
};
object_header* header_of(void* object) { return static_cast<object_header*>(object) - 1; }

/// An object on its way from a throw to the end of its handlers. std::rethrow_exception() sends an
/// object on another flight.
struct flight {
  void* object;
  void* adjusted;  // the object as its handler's type
  int handlers;    // those that have it; negative while it is thrown again
  flight* outer;   // whose handler was entered before
};
flight* caught = nullptr;
unsigned uncaught = 0;

[[noreturn]] void raise(flight* f) {
  ++uncaught;
  __builtin_wasm_throw(0, f);
}

void* allocate(std::size_t bytes) {
  void* const block = std::malloc(bytes);
  if (!block) std::terminate();
  return block;
}

/// Reads a table of the compiler.
struct reader {
  const std::uint8_t* at;

  std::uintptr_t number() {  // ULEB128
    std::uintptr_t all = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t byte = *at++;
      all |= static_cast<std::uintptr_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return all;
    }
  }
  std::intptr_t signed_number() {  // SLEB128
    std::uintptr_t all = 0;
    unsigned shift = 0;
    std::uint8_t byte = 0;
    do {
      byte = *at++;
      all |= static_cast<std::uintptr_t>(byte & 0x7f) << shift;
      shift += 7;
    } while (byte & 0x80);
    if (byte & 0x40 && shift < 8 * sizeof all) all |= ~std::uintptr_t{0} << shift;
    return static_cast<std::intptr_t>(all);
  }
};

/// The number of the handler's type that catches a flight at a landing pad; 0 for none.
std::uintptr_t find_handler(flight& f, const std::uint8_t* table, std::uintptr_t landing_pad) {
  constexpr std::uint8_t omitted = 0xff;
  using type = __cxxabiv1::__shim_type_info;
  reader from{table};
  if (*from.at++ != omitted) from.at += sizeof(void*);  // where landing pads start
  const type* const* types_end = nullptr;
  if (*from.at++ != omitted) {
    const auto distance = from.number();
    types_end = reinterpret_cast<const type* const*>(from.at + distance);
  }
  ++from.at;  // how the following is encoded, always ULEB128
  const auto length = from.number();
  const std::uint8_t* const actions = from.at + length;
  for (std::uintptr_t i = 0; i < landing_pad && from.at < actions; ++i) {
    from.number();
    from.number();
  }
  if (from.at >= actions) return 0;
  from.number();
  const auto first = from.number();
  if (first == 0) return 0;
  const auto* const thrown = static_cast<const type*>(header_of(f.object)->type);
  for (reader action{actions + first - 1};;) {
    const auto number = action.signed_number();
    if (number > 0) {
      const type* const handler = types_end[-number];
      void* object = f.object;
      if (!handler || handler->can_catch(thrown, object)) {
        f.adjusted = object;
        return static_cast<std::uintptr_t>(number);
      }
    }
    const std::uint8_t* const here = action.at;
    const auto distance = action.signed_number();
    if (distance == 0) return 0;
    action.at = here + distance;
  }
}

}  // namespace

void* operator new(std::size_t bytes) {
  void* const block = std::malloc(bytes ? bytes : 1);
  if (!block) throw std::bad_alloc();
  return block;
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto step = std::max(static_cast<std::size_t>(alignment), sizeof(void*));
  void* const block = std::aligned_alloc(step, std::max((bytes + step - 1) / step * step, step));
  if (!block) throw std::bad_alloc();
  return block;
}

extern "C" {

/// What a landing pad and _Unwind_CallPersonality() tell each other; clang knows its layout.
struct landing_pad_context {
  std::uintptr_t landing_pad;
  const std::uint8_t* table;
  std::uintptr_t selector;
};
thread_local landing_pad_context __wasm_lpad_context;

int _Unwind_CallPersonality(void* thrown) {
  auto& context = __wasm_lpad_context;
  context.selector =
      find_handler(*static_cast<flight*>(thrown), context.table, context.landing_pad);
  return 0;
}

void* __cxa_allocate_exception(std::size_t size) noexcept {
  return ::new (allocate(sizeof(object_header) + size)) object_header{} + 1;
}
void __cxa_free_exception(void* object) noexcept { std::free(header_of(object)); }
__cxxabiv1::__cxa_exception* __cxa_init_primary_exception(void* object, std::type_info* type,
                                                          destructor* destroy) noexcept {
  *header_of(object) = {type, destroy, 0};
  return reinterpret_cast<__cxxabiv1::__cxa_exception*>(header_of(object));
}

void __cxa_increment_exception_refcount(void* object) noexcept {
  if (object) ++header_of(object)->references;
}
void __cxa_decrement_exception_refcount(void* object) noexcept {
  if (!object || --header_of(object)->references != 0) return;
  if (header_of(object)->destroy) header_of(object)->destroy(object);
  __cxa_free_exception(object);
}

void __cxa_rethrow_primary_exception(void* object) {
  if (!object) return;
  __cxa_increment_exception_refcount(object);
  raise(::new (allocate(sizeof(flight))) flight{object, object, 0, nullptr});
}
[[noreturn]] void __cxa_throw(void* object, std::type_info* type, destructor* destroy) {
  __cxa_init_primary_exception(object, type, destroy);
  __cxa_rethrow_primary_exception(object);
  std::terminate();
}

void* __cxa_get_exception_ptr(void* thrown) noexcept {
  return static_cast<flight*>(thrown)->adjusted;
}
void* __cxa_begin_catch(void* thrown) noexcept {
  auto* const f = static_cast<flight*>(thrown);
  f->handlers = (f->handlers < 0 ? -f->handlers : f->handlers) + 1;
  if (f != caught) {
    f->outer = caught;
    caught = f;
  }
  --uncaught;
  return f->adjusted;
}
void __cxa_end_catch() {
  flight* const f = caught;
  if (!f) return;
  const bool thrown_again = f->handlers < 0;
  f->handlers += thrown_again ? 1 : -1;
  if (f->handlers != 0) return;
  caught = f->outer;
  if (thrown_again) return;
  void* const object = f->object;
  std::free(f);
  __cxa_decrement_exception_refcount(object);
}
[[noreturn]] void __cxa_rethrow() {
  if (!caught) std::terminate();
  caught->handlers = -caught->handlers;
  raise(caught);
}

std::type_info* __cxa_current_exception_type() {
  return caught ? const_cast<std::type_info*>(header_of(caught->object)->type) : nullptr;
}
void* __cxa_current_primary_exception() noexcept {
  if (!caught) return nullptr;
  __cxa_increment_exception_refcount(caught->object);
  return caught->object;
}
// Of one thread, whose end is the program's.
int __cxa_atexit(void (*destroy)(void*), void* object, void* library);
int __cxa_thread_atexit(void (*destroy)(void*), void* object, void* library) {
  return __cxa_atexit(destroy, object, library);
}

unsigned __cxa_uncaught_exceptions() noexcept { return uncaught; }
bool __cxa_uncaught_exception() noexcept { return uncaught != 0; }

}  // extern "C"
