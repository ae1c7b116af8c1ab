#include "heedful/formats/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "heedful/core/error.h"

namespace heedful {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::uint64_t kMaxHeaderBytes = 65535;  // more than any plain array needs
constexpr std::size_t kMaxRank = 64;              // NumPy's own limit
constexpr std::size_t kAlignment = 64;            // of the data within the file

constexpr std::array<std::pair<std::string_view, DataType>, 12> kTypeCodes{{{"f8", DataType::f64},
                                                                            {"f4", DataType::f32},
                                                                            {"f2", DataType::f16},
                                                                            {"i8", DataType::i64},
                                                                            {"i4", DataType::i32},
                                                                            {"i2", DataType::i16},
                                                                            {"i1", DataType::i8},
                                                                            {"u8", DataType::u64},
                                                                            {"u4", DataType::u32},
                                                                            {"u2", DataType::u16},
                                                                            {"u1", DataType::u8},
                                                                            {"b1", DataType::boolean}}};

struct Header {
  DataType type = DataType::f64;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<Index> shape;
};

// Reads the one form of Python dictionary that a header takes.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view where) : rest_(text), where_(where) {}

  Header parse() {
    Header header;
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !std::exchange(has_type, true)) {
        parse_type(header);
      } else if (key == "fortran_order" && !std::exchange(has_order, true)) {
        header.fortran_order = boolean();
      } else if (key == "shape" && !std::exchange(has_shape, true)) {
        header.shape = shape();
      } else {
        fail(where_, "header: expected descr, fortran_order and shape once each, got {}", shown(key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    require(rest_.empty(), where_, "header: expected nothing after the dictionary, got {} bytes", rest_.size());
    require(has_type && has_order && has_shape, where_,
            "header: expected descr, fortran_order and shape, one is missing");
    return header;
  }

 private:
  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }

  bool accept(char symbol) {
    skip_space();
    if (rest_.empty() || rest_.front() != symbol) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(char symbol) { require(accept(symbol), where_, "header: expected '{}' before {}", symbol, next()); }

  std::string next() const { return shown(rest_.substr(0, 20)); }  // for errors

  std::string_view quoted() {
    const char quote = accept('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const std::size_t end = rest_.find(quote);
    require(end != std::string_view::npos, where_, "header: a text without an end");
    const std::string_view text = rest_.substr(0, end);
    require(text.find('\\') == std::string_view::npos, where_, "header: expected a plain text, got an escape");
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool boolean() {
    if (accept_word("True")) return true;
    require(accept_word("False"), where_, "header: fortran_order: expected True or False, got {}", next());
    return false;
  }

  std::vector<Index> shape() {
    std::vector<Index> extents;
    expect('(');
    while (!accept(')')) {
      skip_space();
      Index extent = 0;
      const char* const begin = rest_.data();
      const auto [stop, error] = std::from_chars(begin, begin + rest_.size(), extent);
      require(error == std::errc{} && extent >= 0, where_, "header: shape: expected a size, got {}", next());
      rest_.remove_prefix(static_cast<std::size_t>(stop - begin));
      accept('L');  // Python 2 wrote long integers so
      extents.push_back(extent);
      require(extents.size() <= kMaxRank, where_, "header: shape: expected at most {} axes", kMaxRank);
      if (accept(',')) continue;
      expect(')');
      require(extents.size() > 1, where_, "header: shape: expected a tuple, got a number in parentheses");
      break;
    }
    return extents;
  }

  void parse_type(Header& header) {
    skip_space();
    require(rest_.empty() || rest_.front() != '[', where_, "type: expected plain numbers, got records");
    const std::string_view text = quoted();
    std::string_view code = text;
    if (!code.empty() && std::string_view("<>=|").find(code.front()) != std::string_view::npos) {
      header.big_endian = code.front() == '>';
      code.remove_prefix(1);
    }
    require(!code.starts_with('O'), where_, "type: expected numbers, got pickled objects, which are never read");
    const auto* found = std::ranges::find(kTypeCodes, code, &std::pair<std::string_view, DataType>::first);
    require(found != kTypeCodes.end(), where_, "type: expected b1, i1 to i8, u1 to u8 or f2 to f8, got {}",
            shown(text));
    header.type = found->second;
  }

  std::string_view rest_;
  std::string_view where_;
};

void swap_bytes(std::vector<std::byte>& bytes, std::size_t element) {
  for (auto first = bytes.begin(); first != bytes.end(); first += static_cast<Index>(element)) {
    std::reverse(first, first + static_cast<Index>(element));
  }
}

// The first axis moves fastest in the file; here the last does.
std::vector<std::byte> to_row_major(const std::vector<std::byte>& source, std::span<const Index> shape,
                                    std::size_t element) {
  std::vector<std::byte> result(source.size());
  std::vector<Index> index(shape.size(), 0), stride(shape.size());
  Index step = static_cast<Index>(element);
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    stride[axis] = step;
    step *= shape[axis];
  }
  Index offset = 0;
  for (std::size_t position = 0; position < result.size(); position += element) {
    std::memcpy(&result[position], &source[static_cast<std::size_t>(offset)], element);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      offset += stride[axis];
      if (++index[axis] < shape[axis]) break;
      offset -= stride[axis] * std::exchange(index[axis], 0);
    }
  }
  return result;
}

}  // namespace

Array parse_npy(std::vector<std::byte> file, std::string_view where) {
  ByteReader reader(file, std::string(where));
  require(as_text(reader.take(kMagic.size(), "npy magic")) == kMagic, where, "npy magic: expected \\x93NUMPY");
  const std::uint64_t major = reader.take_integer(1, "npy version");
  const std::uint64_t minor = reader.take_integer(1, "npy version");
  require(major >= 1 && major <= 3 && minor == 0, where, "npy version: expected 1.0, 2.0 or 3.0, got {}.{}", major,
          minor);
  const std::uint64_t header_bytes = reader.take_integer(major == 1 ? 2 : 4, "npy header length");
  require(header_bytes <= kMaxHeaderBytes, where, "npy header: expected at most {} bytes, got {}", kMaxHeaderBytes,
          header_bytes);
  Header header = HeaderParser(as_text(reader.take(header_bytes, "npy header")), where).parse();

  const Index data_bytes = array_size(header.type, header.shape, where).bytes;
  require(std::cmp_equal(data_bytes, reader.rest().size()), where, "data: expected {} bytes for {} [{}], got {}",
          data_bytes, name(header.type), fmt::join(header.shape, ", "), reader.rest().size());

  // The vector that came in becomes the array's: the data move to its front.
  file.erase(file.begin(), file.end() - data_bytes);
  const auto element = static_cast<std::size_t>(byte_size(header.type));
  if (header.big_endian) swap_bytes(file, element);
  if (header.fortran_order) file = to_row_major(file, header.shape, element);
  return {header.type, std::move(header.shape), std::move(file)};
}

std::string npy_preamble(const Array& array, std::string_view where) {
  const auto* code = std::ranges::find(kTypeCodes, array.type, &std::pair<std::string_view, DataType>::second);
  require(code != kTypeCodes.end(), where, "type: NumPy has none for {}", name(array.type));
  check_size(array, where);
  require(array.shape.size() <= kMaxRank, where, "shape: expected at most {} axes, got {}", kMaxRank,
          array.shape.size());

  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   byte_size(array.type) == 1 ? '|' : '<', code->first, fmt::join(array.shape, ", "),
                                   array.shape.size() == 1 ? "," : "");
  const std::size_t before = kMagic.size() + 4;  // version and header length
  const std::size_t whole = (before + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  header.append(whole - before - header.size() - 1, ' ');
  header += '\n';

  std::string preamble(kMagic);
  preamble += {'\1', '\0', static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  return preamble + header;
}

Array read_npy(const std::filesystem::path& path, Index max_bytes) {
  return parse_npy(read_file(path, max_bytes), path.string());
}

void write_npy(const std::filesystem::path& path, const Array& array) {
  const std::string preamble = npy_preamble(array, path.string());
  const std::array<Bytes, 2> parts{as_bytes(preamble), array.bytes};
  write_file(path, parts);
}

}  // namespace heedful
