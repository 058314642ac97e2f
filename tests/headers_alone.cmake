# SPDX-License-Identifier: Apache-2.0
# Every header brings what it needs: -DROOT -DFLAGS_FILE -DCOMPILER (clang) -DWORK. Compiled alone, each would read the
# standard library, Eigen and most of this one again. Here each is a submodule of a clang module: it is read once, and
# sees of the other headers only what it includes. Of the standard library's headers all are visible together, so the
# names that a header uses of them are looked up in a list.
# Also compiled: the source that a target of the package gives programs, and a program with AVX-512.

cmake_minimum_required(VERSION 3.24)
include("${ROOT}/cmake/headers.cmake")
file(STRINGS "${FLAGS_FILE}" flags)
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")

# Which standard header has which names.
set(names_of_algorithm all_of any_of none_of clamp copy copy_n copy_backward count count_if equal fill fill_n find find_if
  for_each generate lexicographical_compare lower_bound max max_element min min_element minmax_element nth_element
  partial_sort remove_if replace reverse rotate sort stable_sort stable_partition swap_ranges transform unique upper_bound)
set(names_of_array array to_array)
set(names_of_atomic atomic atomic_flag atomic_ref atomic_thread_fence memory_order memory_order_acq_rel
  memory_order_acquire memory_order_relaxed memory_order_release memory_order_seq_cst)
set(names_of_bit bit_cast bit_ceil bit_floor bit_width countl_zero countr_zero endian has_single_bit popcount rotl rotr)
set(names_of_charconv chars_format from_chars to_chars)
set(names_of_chrono chrono)
set(names_of_cmath abs atan atan2 cbrt ceil copysign cos erf erfc exp exp2 expm1 fabs floor fma fmod frexp isfinite isinf
  isnan ldexp lgamma llround log log10 log1p log2 lround nearbyint pow remainder rint round signbit sin sqrt tan tanh trunc)
set(names_of_compare strong_ordering)
set(names_of_complex complex)
set(names_of_concepts constructible_from convertible_to default_initializable derived_from floating_point integral
  invocable same_as signed_integral)
set(names_of_condition_variable condition_variable)
set(names_of_cstddef byte max_align_t nullptr_t ptrdiff_t size_t)
set(names_of_cstdint int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t)
set(names_of_cstdio FILE fclose ferror fflush fopen fprintf fputs fread fwrite printf rename snprintf)
set(names_of_cstdlib abort atexit atoi free getenv malloc qsort strtod strtol strtoll strtoul strtoull)
set(names_of_cstring memcmp memcpy memmove memset strcmp strerror strlen strncmp)
set(names_of_deque deque)
set(names_of_exception current_exception exception exception_ptr make_exception_ptr rethrow_exception terminate
  uncaught_exceptions)
set(names_of_filesystem filesystem)
set(names_of_fstream ifstream ofstream)
set(names_of_functional function greater invoke less multiplies plus)
set(names_of_initializer_list initializer_list)
set(names_of_iterator back_inserter default_sentinel_t distance input_iterator_tag next prev)
set(names_of_limits numeric_limits)
set(names_of_list list)
set(names_of_map map multimap)
set(names_of_memory addressof construct_at destroy_at make_shared make_unique make_unique_for_overwrite shared_ptr
  unique_ptr weak_ptr)
set(names_of_mutex call_once lock_guard mutex once_flag scoped_lock try_to_lock unique_lock)
set(names_of_new align_val_t bad_alloc bad_array_new_length launder nothrow)
set(names_of_numbers numbers)
set(names_of_numeric accumulate exclusive_scan gcd inner_product iota lcm partial_sum reduce)
set(names_of_optional nullopt optional)
set(names_of_queue priority_queue queue)
set(names_of_random mt19937 mt19937_64 random_device uniform_int_distribution)
set(names_of_source_location source_location)
set(names_of_span span)
set(names_of_sstream istringstream ostringstream stringstream)
set(names_of_stdexcept invalid_argument length_error logic_error out_of_range overflow_error runtime_error)
set(names_of_string stod stoi stoll string to_string)
set(names_of_string_view string_view u32string_view)
set(names_of_system_error errc error_code generic_category system_error)
set(names_of_thread jthread this_thread thread)
set(names_of_tuple apply forward_as_tuple make_tuple tie tuple tuple_cat tuple_element_t tuple_size_v)
set(names_of_type_traits bool_constant common_type_t conditional_t decay_t enable_if_t extent_v false_type
  integral_constant invoke_result_t is_arithmetic_v is_array_v is_base_of_v is_class_v is_const_v is_convertible_v
  is_default_constructible_v is_empty_v is_enum_v is_final_v is_floating_point_v is_integral_v is_invocable_r_v
  is_invocable_v is_lvalue_reference_v is_pointer_v is_reference_v is_same_v is_signed_v is_trivially_copyable_v
  is_trivially_destructible_v is_unsigned_v is_void_v make_unsigned_t remove_const_t remove_cvref_t remove_extent_t
  remove_pointer_t remove_reference_t true_type type_identity type_identity_t underlying_type_t void_t)
set(names_of_typeinfo type_info)
set(names_of_unordered_map unordered_map unordered_multimap)
set(names_of_unordered_set unordered_set)
set(names_of_utility as_const cmp_greater_equal cmp_less_equal declval exchange forward in_range index_sequence
  index_sequence_for integer_sequence make_index_sequence make_integer_sequence make_pair move pair swap)
set(names_of_variant monostate variant visit)
set(names_of_vector vector)
get_cmake_property(variables VARIABLES)
list(FILTER variables INCLUDE REGEX "^names_of_")
foreach(variable IN LISTS variables)
  string(REPLACE "names_of_" "" header "${variable}")
  foreach(name IN LISTS ${variable})
    set("std_${name}" "${header}")
  endforeach()
endforeach()

# What each header includes itself before its first declaration, of this library and of others, and the standard names
# that it uses. Headers that are needed without RTTI alone may stand between them. What it includes behind them, as the
# run time's part, may include the header itself.
set(others "")
set(before "^#(include|pragma|if XLA_KERNELS_HERE)|^namespace [a-z]+ {(})?$")
foreach(header IN LISTS XLA_HEADERS)
  file(READ "${ROOT}/include/${header}" text)
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REGEX MATCHALL "#include <[^>\n]+" lines "${text}")
  list(TRANSFORM lines REPLACE "#include <" "")
  list(APPEND others ${lines})
  set("includes-${header}" ${lines})
  file(STRINGS "${ROOT}/include/${header}" lines REGEX "^(#|[A-Za-z])")
  set(without_rtti OFF)
  foreach(line IN LISTS lines)
    if(line MATCHES "^#include \"([^\"]+)")
      list(APPEND "includes-${header}" "${CMAKE_MATCH_1}")
    elseif(line STREQUAL "#ifndef __cpp_rtti")
      set(without_rtti ON)
    elseif(without_rtti AND line STREQUAL "#endif")
      set(without_rtti OFF)
    elseif(NOT line MATCHES "${before}")
      break()
    endif()
  endforeach()
  string(REGEX MATCHALL "std::[a-zA-Z0-9_]+" used "${text}")
  list(REMOVE_DUPLICATES used)
  list(TRANSFORM used REPLACE "std::" "")
  set("uses-${header}" ${used})
endforeach()
list(REMOVE_DUPLICATES others)

# all_includes(<header>): the property "all of <header>", what it includes, itself or by another one.
function(all_includes header)
  get_property(known GLOBAL PROPERTY "all of ${header}" SET)
  if(known)
    return()
  endif()
  set(all "${includes-${header}}")
  foreach(one IN LISTS "includes-${header}")
    if(one MATCHES "^xla/")
      all_includes("${one}")
      get_property(more GLOBAL PROPERTY "all of ${one}")
      list(APPEND all ${more})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES all)
  set_property(GLOBAL PROPERTY "all of ${header}" ${all})
endfunction()

set(checked 0)
foreach(header IN LISTS XLA_HEADERS)
  all_includes("${header}")
  get_property(all GLOBAL PROPERTY "all of ${header}")
  foreach(name IN LISTS "uses-${header}")
    if(DEFINED "std_${name}")
      math(EXPR checked "${checked} + 1")
      if(NOT "${std_${name}}" IN_LIST all)
        message(SEND_ERROR "${header} uses std::${name} and does not include <${std_${name}}>")
      endif()
    endif()
  endforeach()
endforeach()

# One module of all that is not of this library, with every file of Eigen and Hana, which are included in parts, too.
set(outside "${WORK}/outside.hpp")
list(FILTER others EXCLUDE REGEX "^(Eigen/src|io[.]h|malloc[.]h|process[.]h|immintrin[.]h|arm_neon[.]h)")
list(TRANSFORM others REPLACE "(.+)" "#include <\\1>\n" OUTPUT_VARIABLE lines)
list(JOIN lines "" text)
file(WRITE "${outside}" "${text}#include <immintrin.h>\n#include <Eigen/Core>\n")
execute_process(COMMAND "${COMPILER}" ${flags} -w -x c++ -M "${outside}" OUTPUT_VARIABLE files COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "/[^ \n\\]+" files "${files}")
set(map "module outside [system] {\n  header \"${outside}\"\n")
foreach(file IN LISTS files)
  set(public OFF)
  if(file MATCHES "/Eigen/|/boost/")
    set(public ON)
  else()
    foreach(other IN LISTS others ITEMS immintrin.h)
      string(FIND "${file}" "/${other}" at REVERSE)
      string(LENGTH "${file}" length)
      string(LENGTH "/${other}" end)
      math(EXPR end "${at} + ${end}")
      if(at GREATER_EQUAL 0 AND end EQUAL length)
        set(public ON)
      endif()
    endforeach()
  endif()
  if(public AND NOT file MATCHES "/(plugins|bits|linux)/")  # parts of others
    string(APPEND map "  header \"${file}\"\n")
  endif()
endforeach()
string(APPEND map "  export *\n}\nmodule xla {\n")
foreach(header IN LISTS XLA_HEADERS)
  string(MAKE_C_IDENTIFIER "${header}" name)
  string(APPEND map "  module ${name} { header \"${ROOT}/include/${header}\" export * }\n")
endforeach()
file(WRITE "${WORK}/headers.modulemap" "${map}}\n")
file(WRITE "${WORK}/any.cpp" "#include <xla/base/error.hpp>\n")
execute_process(COMMAND "${COMPILER}" ${flags} -w -ferror-limit=0 -fmodules -fcxx-modules -fno-implicit-module-maps
  -fmodule-map-file=${WORK}/headers.modulemap -fmodules-cache-path=${WORK}/modules
  -Xclang -fmodules-local-submodule-visibility -fsyntax-only "${WORK}/any.cpp" RESULT_VARIABLE failed)
file(REMOVE_RECURSE "${WORK}/modules")
list(LENGTH XLA_HEADERS count)
message(STATUS "${count} headers, ${checked} uses of names of the standard library")

# What xla::pjrt gives a program, which tests build with the run time in a library.
file(WRITE "${WORK}/pjrt_backend.cpp" "#define XLA_EXTERN_PJRT 1\n#define XLA_BACKEND_GRAPHS 1\n"
  "#include \"${ROOT}/cmake/pjrt/backend.cpp\"\n")
execute_process(COMMAND "${COMPILER}" ${flags} -fsyntax-only "${WORK}/pjrt_backend.cpp" RESULT_VARIABLE failed_source)

# Products by vdpbf16ps, which headers alone have only with AVX-512.
set(failed_wide 0)
cmake_host_system_information(RESULT processor QUERY OS_PLATFORM)
if(processor MATCHES "x86_64|AMD64")
  file(WRITE "${WORK}/avx512.cpp" [[
#include <xla/xla.hpp>
static_assert(XLA_HAS_DOT);
int main() {
  xla::eager_mode(true);
  const auto a = xla::ones<float>({2, 2});
  return static_cast<int>(xla::sum(xla::autocast(a, [&] { return matmul(a, a); })).item());
}
]])
  execute_process(COMMAND "${COMPILER}" ${flags} -march=x86-64-v4 -fsyntax-only "${WORK}/avx512.cpp"
    RESULT_VARIABLE failed_wide)
endif()
if(failed OR failed_source OR failed_wide)
  message(FATAL_ERROR "these headers do not bring what they need")
endif()
