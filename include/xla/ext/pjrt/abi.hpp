// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of PJRT's C interface that this library uses, declared again: version 0.57 and later of
// XLA's xla/pjrt/c/pjrt_c_api.h. A plugin exports GetPjrtApi(), which returns a table of functions.
// Entries are only ever appended, so an entry is known by its index. Each takes a struct that
// begins with its size as the caller knows it; results are in the fields that follow. Each returns
// an error, or nullptr.

#include <cstddef>
#include <cstdint>

namespace xla::ext::pjrt::abi {

inline constexpr int major_version = 0, oldest_minor_version = 57;

/// Indices in the table.
enum class entry : int {
  error_destroy = 0,
  error_message = 1,
  error_code = 2,
  plugin_initialize = 3,
  plugin_attributes = 4,
  event_destroy = 5,
  event_await = 8,
  client_create = 10,
  client_destroy = 11,
  client_platform_name = 12,
  client_platform_version = 14,
  client_addressable_devices = 16,
  client_compile = 20,
  client_buffer_from_host = 22,
  description_kind = 26,
  device_description = 29,
  executable_destroy = 40,
  executable_replicas = 42,
  executable_partitions = 43,
  executable_serialize = 49,
  loaded_destroy = 50,
  loaded_executable = 51,
  loaded_execute = 55,
  loaded_deserialize = 56,
  buffer_destroy = 58,
  buffer_copy_to_device = 69,
  buffer_to_host = 70,
  buffer_ready_event = 72,
  buffer_address = 73,
  topology_create = 82,
  topology_destroy = 83,
  compile = 89,
  executable_output_types = 90,
  executable_output_sizes = 91,
  executable_memory = 96
};

enum class element : int {
  boolean = 1,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  float32,
  float64,
  bfloat16
};

/// Error codes, as of absl::StatusCode, that are handled differently from others.
enum class code : int { none = 0, unknown = 2, invalid_argument = 3, out_of_memory = 8 };

enum class value_kind : int { string = 0, int64 = 1, int64_list = 2, float32 = 3, boolean = 4 };

// Opaque types of the plugin.
struct error;
struct event;
struct client;
struct device;
struct description;
struct topology;
struct executable;
struct loaded;
struct buffer;
struct serialized;

/// The first fields of every struct.
struct head {
  std::size_t size = 0;
  void* extensions = nullptr;
};

struct version {
  head h;
  int major = 0, minor = 0;
};

struct table {
  head h;
  version speaks;
  error* (*first_entry)(void*);  // the others follow
};

struct named_value {
  head h{sizeof(named_value), nullptr};
  const char* name = nullptr;
  std::size_t name_size = 0;
  value_kind kind = value_kind::string;
  union {
    const char* string = nullptr;
    std::int64_t int64;
    const std::int64_t* int64s;
    float float32;
    bool boolean;
  };
  std::size_t count = 1;  ///< of characters or elements
};

/// The arguments of queries: an object, followed by fields for the answer.
template <class Of>
struct about {
  head h;
  const Of* of = nullptr;
};
template <class Of>
struct text_of {
  head h;
  const Of* of = nullptr;
  const char* text = nullptr;
  std::size_t size = 0;
};
template <class Of, class Number>
struct number_of {
  head h;
  const Of* of = nullptr;
  Number number{};
};
template <class Of, class Made>
struct made_of {
  head h;
  const Of* of = nullptr;
  Made* made = nullptr;
};

struct attributes {
  head h;
  const named_value* values = nullptr;
  std::size_t count = 0;
};

struct client_create {
  head h;
  const named_value* options = nullptr;
  std::size_t option_count = 0;
  void* get = nullptr;  // of a key-value store that processes share; unused
  void* get_with = nullptr;
  void* put = nullptr;
  void* put_with = nullptr;
  client* made = nullptr;
};

struct addressable_devices {
  head h;
  const client* of = nullptr;
  device* const* devices = nullptr;
  std::size_t count = 0;
};

struct program {
  head h;
  const char* code = nullptr;
  std::size_t code_size = 0;
  const char* format = nullptr;
  std::size_t format_size = 0;
};

struct client_compile {
  head h;
  const client* by = nullptr;
  const program* source = nullptr;
  const char* options = nullptr;
  std::size_t options_size = 0;
  loaded* made = nullptr;
};

struct topology_create {
  head h;
  const char* name = nullptr;
  std::size_t name_size = 0;
  const named_value* options = nullptr;
  std::size_t option_count = 0;
  topology* made = nullptr;
};

struct compile_for {
  head h;
  const topology* target = nullptr;
  const program* source = nullptr;
  const char* options = nullptr;
  std::size_t options_size = 0;
  const client* by = nullptr;  // optional
  executable* made = nullptr;
};

/// The axes of an array on the host, the innermost first.
struct memory_layout {
  head h{sizeof(memory_layout), nullptr};
  head tiled_h;
  const std::int64_t* innermost_first = nullptr;
  std::size_t rank = 0;
  const std::int64_t* tiles = nullptr;
  const std::size_t* tile_ranks = nullptr;
  std::size_t tile_count = 0;
  int kind = 0;  // tiled
};

struct buffer_from_host {
  head h;
  const client* by = nullptr;
  const void* data = nullptr;
  element type{};
  const std::int64_t* sizes = nullptr;
  std::size_t rank = 0;
  const std::int64_t* strides = nullptr;  // nullptr: row-major
  std::size_t stride_count = 0;
  int semantics = 0;  // a host_memory of pjrt/client.hpp
  device* on = nullptr;
  void* memory = nullptr;  // nullptr: the device's default memory
  void* layout = nullptr;
  event* host_is_free = nullptr;
  buffer* made = nullptr;
};

struct buffer_to_host {
  head h;
  const buffer* from = nullptr;
  const memory_layout* layout = nullptr;
  void* to = nullptr;
  std::size_t size = 0;
  event* done = nullptr;
};

struct buffer_copy_to_device {
  head h;
  const buffer* from = nullptr;
  device* to = nullptr;
  buffer* made = nullptr;
};

struct execute_options {
  head h;
  void* sends = nullptr;
  void* receives = nullptr;
  std::size_t send_count = 0, receive_count = 0;
  int launch = 0;
  const std::int64_t* non_donatable = nullptr;  // arguments that are not donated
  std::size_t non_donatable_count = 0;
  void* context = nullptr;
};

struct execute {
  head h;
  const loaded* program = nullptr;
  const execute_options* options = nullptr;
  buffer* const* const* arguments = nullptr;  // [device][argument]
  std::size_t devices = 0, argument_count = 0;
  buffer** const* results = nullptr;  // [device][result]
  event** done = nullptr;             // [device]
  device* on = nullptr;
};

struct serialize {
  head h;
  const executable* of = nullptr;
  const char* bytes = nullptr;
  std::size_t size = 0;
  serialized* holds = nullptr;
  void (*destroy)(serialized*) = nullptr;
};

struct deserialize {
  head h;
  const client* by = nullptr;
  const char* bytes = nullptr;
  std::size_t size = 0;
  loaded* made = nullptr;
};

struct output_types {
  head h;
  const executable* of = nullptr;
  const element* types = nullptr;
  std::size_t count = 0;
};

struct output_sizes {
  head h;
  const executable* of = nullptr;
  std::size_t count = 0;
  const std::int64_t* sizes = nullptr;  // of all results, one after the other
  const std::size_t* ranks = nullptr;
};

struct memory_of {
  head h;
  const executable* of = nullptr;
  std::int64_t code = 0, arguments = 0, results = 0, aliased = 0, temporaries = 0;
};

/// The arguments of an entry, followed by room for more. A plugin refuses a struct that is smaller
/// than the one it was built with, and accepts any larger one. Fields that later versions append
/// are zero, which means "not given".
template <class A>
struct padded {
  A given{};
  unsigned char room[256] = {};

  padded() { given.h.size = sizeof *this; }
  A* operator->() { return &given; }
};

}  // namespace xla::ext::pjrt::abi
