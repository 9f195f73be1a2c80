// What real interpreters say of themselves, as 64-bit words from the start of _PyRuntime.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep::stacks {

constexpr std::uint64_t kCookieWord = 0x7970677562656478;  // "xdebugpy"

// Debian 13's CPython 3.13.5 for x86-64.
constexpr std::array<std::uint64_t, 73> kDescription313 = {
    kCookieWord, 0x30d05f0, 0,    283376, 608,  632,  194976, 7272, 7264, 7344, 7400, 7656, 7640,
    7648,        16,        7752, 0,      7768, 7760, 304,    0,    8,    16,   72,   152,  160,
    232,         32,        80,   8,      0,    56,   72,     70,   208,  112,  120,  128,  136,
    68,          52,        96,   104,    200,  16,   8,      416,  24,   88,   168,  32,   24,
    16,          40,        24,   16,     48,   32,   40,     24,   16,   32,   16,   24,   40,
    16,          32,        64,   32,     16,   40,   240,    200};

// Debian sid's CPython 3.14.10 for x86-64.
constexpr std::array<std::uint64_t, 83> kDescription314 = {
    kCookieWord, 0x30e0af0, 0,    316616, 784,  808, 225864, 7280, 7272, 7344, 7360, 7408,
    7688,        7672,      7680, 16,     7784, 0,   7800,   7792, 7992, 0,    832,  0,
    8,           16,        72,   152,    160,  232, 32,     88,   8,    0,    56,   80,
    74,          64,        0,    216,    112,  120, 128,    136,  68,   52,   96,   104,
    208,         0,         16,   8,      416,  24,  88,     168,  40,   32,   16,   40,
    24,          16,        200,  24,     40,   32,  48,     32,   40,   24,   16,   32,
    16,          24,        40,   16,     32,   64,  32,     16,   40,   264,  192};

}  // namespace lockstep::stacks
