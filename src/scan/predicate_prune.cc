// What bounds say of a predicate: docs/decisions tells why this is not SimplifyWithGuarantee.
//
// "May some row be wanted" and "is surely every row wanted" become two expressions over min, max,
// nulls and values, evaluated for all containers at once. NOTs are in the atoms only, so unknown
// (null) parts can only make the whole less sure, never wrong.
#include <arrow/builder.h>
#include <arrow/compute/exec.h>
#include <arrow/scalar.h>

#include <algorithm>

#include "scan/predicate_prune.h"

namespace grebe::scan {
namespace {

namespace cp = arrow::compute;
using Op = BoundAtom::Op;
using Kind = PredicateNode::Kind;

constexpr int kMin = 0, kMax = 1, kNulls = 2, kValues = 3, kPerColumn = 4;
// More values than this are judged in groups of neighbours.
constexpr size_t kRangesMax = 64;

cp::Expression Part(const BoundAtom& atom, int part) {
  return cp::field_ref(arrow::FieldRef(atom.column * kPerColumn + part));
}
cp::Expression Value(const std::shared_ptr<arrow::Scalar>& value) {
  return cp::literal(arrow::Datum(value));
}
cp::Expression Unknown() {
  return cp::literal(arrow::Datum(std::make_shared<arrow::BooleanScalar>()));
}

// The range [low, high] meets [min, max].
cp::Expression Meets(const BoundAtom& atom, const std::shared_ptr<arrow::Scalar>& low,
                     const std::shared_ptr<arrow::Scalar>& high) {
  return cp::and_(cp::less_equal(Part(atom, kMin), Value(high)),
                  cp::greater_equal(Part(atom, kMax), Value(low)));
}

cp::Expression MeetsAny(const BoundAtom& atom) {
  const size_t count = atom.values.size();
  const size_t groups = std::min(count, kRangesMax);
  std::vector<cp::Expression> parts;
  for (size_t group = 0; group < groups; ++group) {
    const size_t begin = count * group / groups, end = count * (group + 1) / groups;
    parts.push_back(Meets(atom, atom.values[begin], atom.values[end - 1]));
  }
  return JoinExpressions(/*is_and=*/false, std::move(parts));
}

std::shared_ptr<arrow::Scalar> TextOf(const std::string& text, const arrow::DataType& type) {
  if (type.id() == arrow::Type::LARGE_STRING) {
    return std::make_shared<arrow::LargeStringScalar>(text);
  }
  return std::make_shared<arrow::StringScalar>(text);
}

cp::Expression MeetsPrefix(const BoundAtom& atom, const arrow::DataType& type) {
  const std::string prefix = LikePrefix(atom.pattern);
  if (prefix.empty()) return cp::literal(true);
  auto above = cp::greater_equal(Part(atom, kMax), Value(TextOf(prefix, type)));
  const auto end = PrefixEnd(prefix);
  if (!end) return above;
  return cp::and_(std::move(above), cp::less(Part(atom, kMin), Value(TextOf(*end, type))));
}

class JudgeMaker {
 public:
  explicit JudgeMaker(const arrow::Schema& columns) : columns_(columns) {}

  cp::Expression Make(const BoundNode& node, bool must) const {
    if (node.kind == Kind::kAtom) return must ? Must(node.atom) : May(node.atom);
    std::vector<cp::Expression> parts;
    for (const BoundNode& child : node.children) parts.push_back(Make(child, must));
    return JoinExpressions(node.kind == Kind::kAnd, std::move(parts));
  }

 private:
  const arrow::DataType& TypeOf(const BoundAtom& atom) const {
    return *columns_.field(atom.column)->type();
  }
  bool IsFloat(const BoundAtom& atom) const { return arrow::is_floating(TypeOf(atom).id()); }

  // Whether a value within [min, max] may make the atom true.
  cp::Expression ValueMay(const BoundAtom& atom) const {
    const auto min = Part(atom, kMin), max = Part(atom, kMax);
    switch (atom.op) {
      case Op::kEqual: return Meets(atom, atom.values[0], atom.values[0]);
      case Op::kLess: return cp::less(min, Value(atom.values[0]));
      case Op::kLessEqual: return cp::less_equal(min, Value(atom.values[0]));
      case Op::kGreater: return cp::greater(max, Value(atom.values[0]));
      case Op::kGreaterEqual: return cp::greater_equal(max, Value(atom.values[0]));
      case Op::kIn: return MeetsAny(atom);
      case Op::kLike: return MeetsPrefix(atom, TypeOf(atom));
      case Op::kNotEqual:   // a NaN beside the only value is another one
        if (IsFloat(atom)) return cp::literal(true);
        return cp::or_(cp::not_equal(min, Value(atom.values[0])),
                       cp::not_equal(max, Value(atom.values[0])));
      default: return cp::literal(true);
    }
  }

  cp::Expression May(const BoundAtom& atom) const {
    switch (atom.op) {
      case Op::kUntyped: return Unknown();
      case Op::kUnknown: return cp::literal(false);
      case Op::kIsNull: return Part(atom, atom.negated ? kValues : kNulls);
      case Op::kIsValid: return atom.negated ? cp::literal(false) : Part(atom, kValues);
      default: break;
    }
    if (atom.negated) return Part(atom, kValues);
    return cp::and_(Part(atom, kValues), ValueMay(atom));
  }

  // Whether every value within [min, max] makes the atom true.
  cp::Expression EveryValue(const BoundAtom& atom) const {
    const auto min = Part(atom, kMin), max = Part(atom, kMax);
    const auto& value = atom.values[0];
    switch (atom.op) {
      case Op::kEqual: return cp::and_(cp::equal(min, Value(value)), cp::equal(max, Value(value)));
      case Op::kNotEqual:
        return cp::or_(cp::greater(min, Value(value)), cp::less(max, Value(value)));
      case Op::kLess: return cp::less(max, Value(value));
      case Op::kLessEqual: return cp::less_equal(max, Value(value));
      case Op::kGreater: return cp::greater(min, Value(value));
      case Op::kGreaterEqual: return cp::greater_equal(min, Value(value));
      default: return Unknown();
    }
  }

  cp::Expression Must(const BoundAtom& atom) const {
    switch (atom.op) {
      case Op::kUntyped: return Unknown();
      case Op::kUnknown: return cp::literal(false);
      case Op::kIsNull: return cp::not_(Part(atom, atom.negated ? kNulls : kValues));
      case Op::kIsValid:
        return atom.negated ? cp::literal(false) : cp::not_(Part(atom, kNulls));
      default: break;
    }
    // Bounds say nothing of NaN.
    if (atom.negated || IsFloat(atom) || atom.values.empty()) return Unknown();
    return cp::and_(cp::not_(Part(atom, kNulls)), EveryValue(atom));
  }

  const arrow::Schema& columns_;
};

// A bound in the column's type; null: it has no value there (a widening that failed).
std::shared_ptr<arrow::Scalar> InType(const std::shared_ptr<arrow::Scalar>& bound,
                                      const std::shared_ptr<arrow::DataType>& type) {
  if (bound == nullptr || bound->type->Equals(*type)) return bound;
  auto array = arrow::MakeArrayFromScalar(*bound, 1);
  if (!array.ok()) return nullptr;
  auto cast = ToComparable(*array, type);
  if (!cast.ok()) return nullptr;
  auto scalar = (*cast)->GetScalar(0);
  return scalar.ok() ? *scalar : nullptr;
}

Result<std::shared_ptr<arrow::Array>> BoundArray(const ColumnBounds& column, bool is_min,
                                                 const std::shared_ptr<arrow::DataType>& type) {
  ARROW_ASSIGN_OR_RAISE(auto builder, arrow::MakeBuilder(type));
  for (const pq::Bounds& bounds : column.bounds) {
    const auto bound = InType(is_min ? bounds.min : bounds.max, type);
    ARROW_RETURN_NOT_OK(bound == nullptr ? builder->AppendNull() : builder->AppendScalar(*bound));
  }
  return builder->Finish();
}

// Whether the containers may hold nulls, or values.
Result<std::shared_ptr<arrow::Array>> PresenceArray(const ColumnBounds& column, bool nulls) {
  arrow::BooleanBuilder builder;
  for (const pq::Bounds& bounds : column.bounds) {
    const bool may = nulls ? !bounds.null_count || *bounds.null_count > 0
                           : bounds.value_count != 0 && !bounds.only_nulls();
    ARROW_RETURN_NOT_OK(builder.Append(may));
  }
  return builder.Finish();
}

std::vector<bool> Bits(const arrow::Datum& datum, size_t count, bool if_unknown) {
  if (datum.is_scalar()) {
    const auto& scalar = static_cast<const arrow::BooleanScalar&>(*datum.scalar());
    return std::vector<bool>(count, scalar.is_valid ? scalar.value : if_unknown);
  }
  const auto array = datum.make_array();
  const auto& bits = static_cast<const arrow::BooleanArray&>(*array);
  std::vector<bool> out(count);
  for (size_t i = 0; i < count; ++i) {
    const auto at = static_cast<int64_t>(i);
    out[i] = bits.IsNull(at) ? if_unknown : bits.Value(at);
  }
  return out;
}

}  // namespace

Result<Judges> MakeJudges(const BoundNode& root, const arrow::Schema& columns) {
  arrow::FieldVector fields;
  for (const auto& field : columns.fields()) {
    fields.push_back(arrow::field("min", field->type()));
    fields.push_back(arrow::field("max", field->type()));
    fields.push_back(arrow::field("nulls", arrow::boolean()));
    fields.push_back(arrow::field("values", arrow::boolean()));
  }
  Judges out;
  out.schema = arrow::schema(std::move(fields));
  const JudgeMaker maker(columns);
  ARROW_ASSIGN_OR_RAISE(out.may, maker.Make(root, false).Bind(*out.schema));
  ARROW_ASSIGN_OR_RAISE(out.must, maker.Make(root, true).Bind(*out.schema));
  return out;
}

Result<BoundPredicate::Verdicts> BoundPredicate::Judge(std::span<const ColumnBounds> bounds,
                                                       size_t count) const {
  std::vector<arrow::Datum> columns;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const auto& type = schema_->field(static_cast<int>(i))->type();
    for (const bool is_min : {true, false}) {
      ARROW_ASSIGN_OR_RAISE(auto array, BoundArray(bounds[i], is_min, type));
      columns.emplace_back(std::move(array));
    }
    for (const bool nulls : {true, false}) {
      ARROW_ASSIGN_OR_RAISE(auto array, PresenceArray(bounds[i], nulls));
      columns.emplace_back(std::move(array));
    }
  }
  const cp::ExecBatch input(std::move(columns), static_cast<int64_t>(count));
  ARROW_ASSIGN_OR_RAISE(auto may, cp::ExecuteScalarExpression(may_, input));
  ARROW_ASSIGN_OR_RAISE(auto must, cp::ExecuteScalarExpression(must_, input));
  return Verdicts{Bits(may, count, true), Bits(must, count, false)};
}

pq::Bounds ConstantBounds(const std::shared_ptr<arrow::Scalar>& value, int64_t row_count) {
  pq::Bounds out;
  out.value_count = row_count;
  out.null_count = value->is_valid ? 0 : row_count;
  if (value->is_valid) {
    out.min = out.max = value;
    out.min_exact = out.max_exact = true;
  }
  return out;
}

std::optional<std::string> PrefixEnd(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (prefix.empty()) return std::nullopt;
  prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

std::string LikePrefix(std::string_view pattern) {
  return std::string(pattern.substr(0, pattern.find_first_of("%_")));
}

}  // namespace grebe::scan
