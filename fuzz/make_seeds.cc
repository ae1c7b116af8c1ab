// make_seeds FOLDER: small good files of every format, one folder each, for the fuzzers to start from.
#include <zip.h>

#include <cstdio>
#include <exception>
#include <filesystem>

#include "heedful/formats/npy.h"
#include "heedful/formats/npz.h"
#include "heedful/formats/safetensors.h"

namespace heedful {
namespace {

namespace fs = std::filesystem;

Array zeros(DataType type, const std::vector<Index>& shape) {
  Array array{type, shape, {}};
  array.bytes.resize(static_cast<std::size_t>(array.size() * byte_size(type)));
  return array;
}

void make_npy(const fs::path& folder) {
  fs::create_directories(folder);
  write_npy(folder / "scalar", zeros(DataType::i64, {}));
  write_npy(folder / "vector", zeros(DataType::f16, {3}));
  write_npy(folder / "empty", zeros(DataType::boolean, {0, 2}));
  constexpr std::string_view kHeader = "{'descr':'>i2','fortran_order':True,'shape':(2,3)}";
  for (const char version : {'\1', '\2', '\3'}) {
    std::string file = "\x93NUMPY";
    file += {version, '\0', static_cast<char>(kHeader.size()), '\0'};
    if (version != '\1') file += {'\0', '\0'};
    write_file(folder / fmt::format("version_{}", int{version}), file + std::string(kHeader) + "abcdefghijkl");
  }
}

void make_npz(const fs::path& folder) {
  fs::create_directories(folder);
  const ArrayMap arrays{{"a", zeros(DataType::f32, {2, 2})}, {"b/c", zeros(DataType::u8, {1})}};
  write_npz(folder / "none", {});
  write_npz(folder / "stored", arrays);
  write_npz(folder / "deflated", arrays);
  zip_t* archive = zip_open((folder / "deflated").c_str(), 0, nullptr);
  for (zip_uint64_t member = 0; member < arrays.size(); ++member) {
    zip_set_file_compression(archive, member, ZIP_CM_DEFLATE, 9);
  }
  if (zip_close(archive) != 0) throw Error("make_seeds", zip_strerror(archive));
}

void make_safetensors(const fs::path& folder) {
  fs::create_directories(folder);
  write_safetensors(folder / "none", {});
  write_safetensors(folder / "metadata", {{}, {{"step", "1"}}});
  write_safetensors(
      folder / "arrays",
      {{{"a", zeros(DataType::bf16, {2, 1})}, {"b", zeros(DataType::f64, {})}, {"c", zeros(DataType::boolean, {0})}},
       {{"k", "v"}}});
}

}  // namespace
}  // namespace heedful

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: make_seeds FOLDER\n", stderr);
    return 2;
  }
  try {
    const std::filesystem::path folder = arguments[1];
    heedful::make_npy(folder / "npy");
    heedful::make_npz(folder / "npz");
    heedful::make_safetensors(folder / "safetensors");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
