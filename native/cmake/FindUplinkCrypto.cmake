# Finds libsodium or Mbed TLS, and makes the target UplinkCrypto::sodium or UplinkCrypto::mbedtls. A cross
# build looks in CMAKE_SYSROOT, CMAKE_FIND_ROOT_PATH and CMAKE_PREFIX_PATH alone: other places have what the
# machine that builds runs.
set(UplinkCrypto_sodium_names sodium libsodium)
set(UplinkCrypto_sodium_header sodium.h)
set(UplinkCrypto_mbedtls_names mbedcrypto)
set(UplinkCrypto_mbedtls_header mbedtls/chacha20.h)

set(only)
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_SYSROOT AND NOT CMAKE_FIND_ROOT_PATH)
  set(only NO_CMAKE_SYSTEM_PATH NO_SYSTEM_ENVIRONMENT_PATH NO_CMAKE_ENVIRONMENT_PATH)
endif()

foreach(part ${UplinkCrypto_FIND_COMPONENTS})
  find_path(UplinkCrypto_${part}_INCLUDE_DIR ${UplinkCrypto_${part}_header} ${only})
  find_library(UplinkCrypto_${part}_LIBRARY NAMES ${UplinkCrypto_${part}_names} ${only})
  mark_as_advanced(UplinkCrypto_${part}_INCLUDE_DIR UplinkCrypto_${part}_LIBRARY)
  if(NOT UplinkCrypto_${part}_INCLUDE_DIR OR NOT UplinkCrypto_${part}_LIBRARY)
    continue()
  endif()
  set(UplinkCrypto_${part}_FOUND TRUE)
  if(NOT TARGET UplinkCrypto::${part})
    add_library(UplinkCrypto::${part} UNKNOWN IMPORTED)
    set_target_properties(UplinkCrypto::${part} PROPERTIES IMPORTED_LOCATION "${UplinkCrypto_${part}_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${UplinkCrypto_${part}_INCLUDE_DIR}")
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(UplinkCrypto HANDLE_COMPONENTS
  REASON_FAILURE_MESSAGE "install it, or add its directory to CMAKE_PREFIX_PATH, or set UPLINK_CRYPTO to host")
