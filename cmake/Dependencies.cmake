# Libraries from Debian; docs/dependencies.md says why each one.
find_library(UV_STATIC NAMES libuv_a.a REQUIRED)
find_path(UV_INCLUDE uv.h REQUIRED)
add_library(lockstep_uv INTERFACE)
target_include_directories(lockstep_uv SYSTEM INTERFACE ${UV_INCLUDE})
target_link_libraries(lockstep_uv INTERFACE ${UV_STATIC} pthread dl)

find_path(EXPECTED_INCLUDE tl/expected.hpp REQUIRED)
find_path(FMT_INCLUDE fmt/core.h REQUIRED)
find_package(nlohmann_json REQUIRED)

find_library(SSL_STATIC NAMES libssl.a REQUIRED)
find_library(CRYPTO_STATIC NAMES libcrypto.a REQUIRED)
find_path(SSL_INCLUDE openssl/ssl.h REQUIRED)
add_library(lockstep_crypto INTERFACE)
target_include_directories(lockstep_crypto SYSTEM INTERFACE ${SSL_INCLUDE})
target_link_libraries(lockstep_crypto INTERFACE ${CRYPTO_STATIC} pthread dl)
add_library(lockstep_tls INTERFACE)
target_link_libraries(lockstep_tls INTERFACE ${SSL_STATIC} lockstep_crypto)
