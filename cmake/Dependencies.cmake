# Libraries from Debian; docs/dependencies.md says why each one.
# Debian 12 calls the archive libuv_a.a, Debian 13 and Ubuntu 24.04 call it libuv.a.
find_library(UV_STATIC NAMES libuv_a.a libuv.a REQUIRED)
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
find_library(EXPAT_STATIC NAMES libexpat.a REQUIRED)
find_path(EXPAT_INCLUDE expat.h REQUIRED)
find_library(ZLIB_STATIC NAMES libz.a REQUIRED)
find_path(ZLIB_INCLUDE zlib.h REQUIRED)
# The product is linked with libraries that have lost the tables for exceptions: they are C, nothing throws through them,
# and without those of OpenSSL the product is half a megabyte smaller. OpenSSL also loses the call that asks for the
# processor's features at the start of every program, which is slow in a virtual machine: it asks by itself when it is
# first used.
foreach(name SSL CRYPTO EXPAT ZLIB)
  set(${name}_LINKED ${${name}_STATIC})
  if(LOCKSTEP_STATIC)
    set(${name}_LINKED ${CMAKE_BINARY_DIR}/stripped/${name}.a)
    add_custom_command(OUTPUT ${${name}_LINKED} DEPENDS ${${name}_STATIC}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/stripped
      COMMAND ${CMAKE_OBJCOPY} -D --remove-section=.eh_frame --remove-section=.rela.eh_frame
              --remove-section=.init --remove-section=.rela.init
              ${${name}_STATIC} ${${name}_LINKED})
    add_custom_target(stripped_${name} DEPENDS ${${name}_LINKED})
  endif()
endforeach()
# Imported libraries and not plain files: CMake then knows that libssl needs libcrypto and keeps that order, which only
# lld does without.
add_library(lockstep_crypto STATIC IMPORTED GLOBAL)
set_target_properties(lockstep_crypto PROPERTIES IMPORTED_LOCATION ${CRYPTO_LINKED}
  INTERFACE_INCLUDE_DIRECTORIES ${SSL_INCLUDE} INTERFACE_LINK_LIBRARIES "pthread;dl")
# Debian 13's libcrypto calls zstd, Debian 12's does not.
find_library(ZSTD_STATIC NAMES libzstd.a)
if(ZSTD_STATIC)
  target_link_libraries(lockstep_crypto INTERFACE ${ZSTD_STATIC})
endif()
add_library(lockstep_tls STATIC IMPORTED GLOBAL)
set_target_properties(lockstep_tls PROPERTIES IMPORTED_LOCATION ${SSL_LINKED} INTERFACE_LINK_LIBRARIES lockstep_crypto)
if(LOCKSTEP_STATIC)
  add_dependencies(lockstep_crypto stripped_CRYPTO)
  add_dependencies(lockstep_tls stripped_SSL)
endif()
add_library(lockstep_expat STATIC IMPORTED GLOBAL)
set_target_properties(lockstep_expat PROPERTIES IMPORTED_LOCATION ${EXPAT_LINKED}
  INTERFACE_INCLUDE_DIRECTORIES ${EXPAT_INCLUDE})
add_library(lockstep_zlib STATIC IMPORTED GLOBAL)
set_target_properties(lockstep_zlib PROPERTIES IMPORTED_LOCATION ${ZLIB_LINKED}
  INTERFACE_INCLUDE_DIRECTORIES ${ZLIB_INCLUDE})
if(LOCKSTEP_STATIC)
  add_dependencies(lockstep_expat stripped_EXPAT)
  add_dependencies(lockstep_zlib stripped_ZLIB)
endif()

find_library(SQLITE_STATIC NAMES libsqlite3.a REQUIRED)
find_path(SQLITE_INCLUDE sqlite3.h REQUIRED)
add_library(lockstep_sqlite STATIC IMPORTED GLOBAL)
set_target_properties(lockstep_sqlite PROPERTIES IMPORTED_LOCATION ${SQLITE_STATIC}
  INTERFACE_INCLUDE_DIRECTORIES ${SQLITE_INCLUDE} INTERFACE_LINK_LIBRARIES "pthread;dl;m")
