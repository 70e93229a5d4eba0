// A predicate with the types of its columns: literals become values, the tree an expression.
#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/builder.h>
#include <arrow/compute/api_scalar.h>
#include <arrow/compute/cast.h>
#include <arrow/compute/exec.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "scan/predicate.h"
#include "scan/predicate_prune.h"
#include "scan/predicate_value.h"

namespace grebe::scan {
namespace {

namespace cp = arrow::compute;
using Op = BoundAtom::Op;
using Place = PlacedValue::Place;
using Kind = PredicateNode::Kind;

bool IsText(const arrow::DataType& type) {
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING;
}

Op OpOf(AtomOp op) {
  switch (op) {
    case AtomOp::kEqual: return Op::kEqual;
    case AtomOp::kNotEqual: return Op::kNotEqual;
    case AtomOp::kLess: return Op::kLess;
    case AtomOp::kLessEqual: return Op::kLessEqual;
    case AtomOp::kGreater: return Op::kGreater;
    default: return Op::kGreaterEqual;
  }
}

// The comparison that holds exactly where the other does not, nulls and NaN aside.
Op Opposite(Op op) {
  switch (op) {
    case Op::kEqual: return Op::kNotEqual;
    case Op::kNotEqual: return Op::kEqual;
    case Op::kLess: return Op::kGreaterEqual;
    case Op::kLessEqual: return Op::kGreater;
    case Op::kGreater: return Op::kLessEqual;
    default: return Op::kLess;
  }
}

class Binder {
 public:
  Binder(const Predicate& predicate, const std::vector<PredicateColumn>& columns)
      : predicate_(predicate), columns_(columns) {}

  Result<BoundNode> Run() { return Bind(predicate_.root()); }

 private:
  Result<BoundNode> Bind(const PredicateNode& node) {
    BoundNode out;
    out.kind = node.kind;
    if (node.kind == Kind::kAtom) {
      ARROW_ASSIGN_OR_RAISE(out.atom, Atom(node));
      return out;
    }
    for (const PredicateNode& child : node.children) {
      ARROW_ASSIGN_OR_RAISE(auto bound, Bind(child));
      out.children.push_back(std::move(bound));
    }
    return out;
  }

  Result<BoundAtom> Atom(const PredicateNode& node) {
    BoundAtom atom;
    atom.negated = node.negated;
    const auto found = std::ranges::find(columns_, node.column, &PredicateColumn::path);
    if (found == columns_.end()) {
      return InvalidArgument("no such column", "column", node.column, "position", node.position);
    }
    atom.column = static_cast<int>(found - columns_.begin());
    if (found->type == nullptr) {
      atom.op = Op::kUntyped;
      return atom;
    }
    auto status = Fill(node, found->type, &atom);
    if (!status.ok()) return AddContext(status, "column", node.column);
    return atom;
  }

  Status Fill(const PredicateNode& node, const std::shared_ptr<arrow::DataType>& type,
              BoundAtom* atom) {
    const auto comparable = pq::ComparableType(type);
    const bool is_float = arrow::is_floating(comparable->id());
    switch (node.op) {
      case AtomOp::kIsNull:
        atom->op = Op::kIsNull;
        return Status::OK();
      case AtomOp::kIsNaN:
        if (!is_float) return Mismatch(node, *type, "only floats can be NaN");
        atom->op = Op::kIsNaN;
        return Status::OK();
      case AtomOp::kIsTrue:
        if (comparable->id() != arrow::Type::BOOL) {
          return Mismatch(node, *type, "only a boolean column stands by itself");
        }
        atom->op = Op::kEqual;
        atom->values = {std::make_shared<arrow::BooleanScalar>(!atom->negated)};
        atom->negated = false;
        return Status::OK();
      case AtomOp::kLike: return FillLike(node, *comparable, atom);
      case AtomOp::kIn: return FillIn(node, type, atom);
      default: return FillComparison(node, type, is_float, atom);
    }
  }

  static Status Mismatch(const PredicateNode& node, const arrow::DataType& type,
                         std::string_view hint) {
    return InvalidArgument("the column has another type", "type", type.ToString(), "hint", hint,
                           "position", node.position);
  }

  static Status FillLike(const PredicateNode& node, const arrow::DataType& type, BoundAtom* atom) {
    if (!IsText(type)) return Mismatch(node, type, "LIKE is for text");
    atom->op = Op::kLike;
    atom->pattern = node.values[0].text;
    return Status::OK();
  }

  static Status FillIn(const PredicateNode& node, const std::shared_ptr<arrow::DataType>& type,
                       BoundAtom* atom) {
    bool has_null = false;
    for (const Literal& literal : node.values) {
      if (literal.kind == Literal::Kind::kNull) {
        has_null = true;
        continue;
      }
      ARROW_ASSIGN_OR_RAISE(PlacedValue placed, PlaceLiteral(literal, type));
      // What the type cannot hold, and NaN, equals nothing.
      if (placed.place == Place::kExact && !IsNaN(*placed.value)) {
        atom->values.push_back(std::move(placed.value));
      }
    }
    SortValues(&atom->values);
    if (has_null && atom->negated) {
      // Not among the values: unknown, for all of them might be the null.
      atom->op = Op::kUnknown;
    } else if (atom->values.empty()) {
      atom->op = has_null ? Op::kUnknown : Op::kIsValid;
      atom->negated = !atom->negated;
    } else {
      atom->op = Op::kIn;
    }
    return Status::OK();
  }

  static Status FillComparison(const PredicateNode& node,
                               const std::shared_ptr<arrow::DataType>& type, bool is_float,
                               BoundAtom* atom) {
    atom->op = OpOf(node.op);
    if (node.values[0].kind == Literal::Kind::kNull) {
      atom->op = Op::kUnknown;
      return Status::OK();
    }
    ARROW_ASSIGN_OR_RAISE(PlacedValue placed, PlaceLiteral(node.values[0], type));
    ApplyPlace(placed, atom);
    // Of floats, NaN is on neither side: NOT stays.
    const bool ordered = atom->op != Op::kIsValid &&
                         (!is_float || atom->op == Op::kEqual || atom->op == Op::kNotEqual);
    if (atom->negated && ordered) {
      atom->op = Opposite(atom->op);
      atom->negated = false;
    }
    return Status::OK();
  }

  const Predicate& predicate_;
  const std::vector<PredicateColumn>& columns_;
};

// ---- the expression ----

cp::Expression Ref(int column) { return cp::field_ref(arrow::FieldRef(column)); }

Result<std::shared_ptr<arrow::Array>> ValueSet(const BoundAtom& atom) {
  ARROW_ASSIGN_OR_RAISE(auto builder, arrow::MakeBuilder(atom.values[0]->type));
  for (const auto& value : atom.values) {
    ARROW_RETURN_NOT_OK(builder->AppendScalar(*value));
    // Both zeros, whichever the hash of a set tells apart.
    if (value->type->id() == arrow::Type::DOUBLE &&
        static_cast<const arrow::DoubleScalar&>(*value).value == 0) {
      ARROW_RETURN_NOT_OK(builder->AppendScalar(arrow::DoubleScalar(0.0)));
      ARROW_RETURN_NOT_OK(builder->AppendScalar(arrow::DoubleScalar(-0.0)));
    } else if (value->type->id() == arrow::Type::FLOAT &&
               static_cast<const arrow::FloatScalar&>(*value).value == 0) {
      ARROW_RETURN_NOT_OK(builder->AppendScalar(arrow::FloatScalar(0.0F)));
      ARROW_RETURN_NOT_OK(builder->AppendScalar(arrow::FloatScalar(-0.0F)));
    }
  }
  return builder->Finish();
}

// A LIKE pattern as a regular expression: a backslash is a character like others, which Arrow's own
// match_like takes for an escape.
std::string RegexOf(const std::string& pattern) {
  std::string out = "\\A(?s:";
  for (const char c : pattern) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '%') {
      out += "\\C*";   // any bytes: a stored text may be no UTF-8
    } else if (c == '_') {
      out += '.';
    } else if (c == '\0') {
      out += "\\x00";
    } else {
      if (byte < 0x80 && std::isalnum(byte) == 0) out += '\\';
      out += c;
    }
  }
  return out + ")\\z";
}

// By bytes where the pattern is a prefix or has no wildcard.
cp::Expression Like(const BoundAtom& atom, const std::shared_ptr<arrow::DataType>& type) {
  const size_t wildcard = atom.pattern.find_first_of("%_");
  if (wildcard == std::string::npos) {
    auto value = std::make_shared<arrow::StringScalar>(atom.pattern);
    auto literal = cp::literal(arrow::Datum(std::move(value)));
    return cp::call("equal", {Ref(atom.column), cp::call("cast", {literal},
                                                         cp::CastOptions::Safe(type))});
  }
  const bool is_prefix = atom.pattern.find_first_not_of('%', wildcard) == std::string::npos;
  if (is_prefix) {
    return cp::call("starts_with", {Ref(atom.column)},
                    cp::MatchSubstringOptions(LikePrefix(atom.pattern)));
  }
  return cp::call("match_substring_regex", {Ref(atom.column)},
                  cp::MatchSubstringOptions(RegexOf(atom.pattern)));
}

std::string_view FunctionOf(Op op) {
  switch (op) {
    case Op::kEqual: return "equal";
    case Op::kNotEqual: return "not_equal";
    case Op::kLess: return "less";
    case Op::kLessEqual: return "less_equal";
    case Op::kGreater: return "greater";
    default: return "greater_equal";
  }
}

Result<cp::Expression> Positive(const BoundAtom& atom,
                                const std::shared_ptr<arrow::DataType>& type) {
  switch (atom.op) {
    case Op::kIsNull: return cp::is_null(Ref(atom.column));
    case Op::kIsNaN: return cp::call("is_nan", {Ref(atom.column)});
    case Op::kIsValid: return cp::is_valid(Ref(atom.column));
    case Op::kLike: return Like(atom, type);
    case Op::kIn: {
      ARROW_ASSIGN_OR_RAISE(auto set, ValueSet(atom));
      return cp::call("is_in", {Ref(atom.column)},
                      cp::SetLookupOptions(arrow::Datum(set), cp::SetLookupOptions::EMIT_NULL));
    }
    default:
      return cp::call(std::string(FunctionOf(atom.op)),
                      {Ref(atom.column), cp::literal(arrow::Datum(atom.values[0]))});
  }
}

Result<cp::Expression> ExpressionOf(const BoundNode& node, const arrow::Schema& schema) {
  if (node.kind != Kind::kAtom) {
    std::vector<cp::Expression> parts;
    for (const BoundNode& child : node.children) {
      ARROW_ASSIGN_OR_RAISE(auto part, ExpressionOf(child, schema));
      parts.push_back(std::move(part));
    }
    return JoinExpressions(node.kind == Kind::kAnd, std::move(parts));
  }
  const BoundAtom& atom = node.atom;
  if (atom.op == Op::kUnknown || atom.op == Op::kUntyped ||
      (atom.op == Op::kIsValid && atom.negated)) {
    return cp::literal(false);
  }
  ARROW_ASSIGN_OR_RAISE(auto positive, Positive(atom, schema.field(atom.column)->type()));
  return atom.negated ? cp::not_(std::move(positive)) : positive;
}

// Kernels find some mistakes only when they run: a pattern that is no UTF-8, or too long.
Status TryOnNulls(const cp::Expression& expression, const arrow::Schema& schema) {
  std::vector<arrow::Datum> columns;
  for (const auto& field : schema.fields()) {
    ARROW_ASSIGN_OR_RAISE(auto null, arrow::MakeArrayOfNull(field->type(), 1));
    columns.emplace_back(std::move(null));
  }
  return cp::ExecuteScalarExpression(expression, cp::ExecBatch(std::move(columns), 1)).status();
}

void AppendRuns(const arrow::BooleanArray& mask, int64_t first_row, std::vector<RowRange>* rows) {
  for (int64_t i = 0; i < mask.length(); ++i) {
    if (mask.IsNull(i) || !mask.Value(i)) continue;
    const int64_t row = first_row + i;
    if (!rows->empty() && rows->back().end == row) {
      ++rows->back().end;
    } else {
      rows->push_back({row, row + 1});
    }
  }
}

}  // namespace

void ApplyPlace(const PlacedValue& placed, BoundAtom* atom) {
  // Of every value: true or false as the literal lies above or below; NaN is below nothing.
  const auto all = [&](bool holds) {
    atom->op = Op::kIsValid;
    if (!holds) atom->negated = !atom->negated;
  };
  if (placed.place == Place::kExact) {
    atom->values = {placed.value};
    return;
  }
  if (atom->op == Op::kEqual || atom->op == Op::kNotEqual) return all(atom->op == Op::kNotEqual);
  const bool wants_less = atom->op == Op::kLess || atom->op == Op::kLessEqual;
  if (placed.place != Place::kAbove) return all(wants_less == (placed.place == Place::kAboveAll));
  atom->op = wants_less ? Op::kLessEqual : Op::kGreater;
  atom->values = {placed.value};
}

cp::Expression JoinExpressions(bool is_and, std::vector<cp::Expression> parts) {
  // In pairs, so that a long chain is no deep one.
  while (parts.size() > 1) {
    std::vector<cp::Expression> joined;
    for (size_t i = 0; i + 1 < parts.size(); i += 2) {
      joined.push_back(is_and ? cp::and_(parts[i], parts[i + 1]) : cp::or_(parts[i], parts[i + 1]));
    }
    if (parts.size() % 2 == 1) joined.push_back(parts.back());
    parts = std::move(joined);
  }
  return parts[0];
}

Result<std::shared_ptr<const BoundPredicate>> BoundPredicate::Bind(
    const Predicate& predicate, std::vector<PredicateColumn> columns) {
  ARROW_ASSIGN_OR_RAISE(BoundNode root, Binder(predicate, columns).Run());
  return Make(std::move(root), std::move(columns));
}

Result<std::shared_ptr<const BoundPredicate>> BoundPredicate::Make(
    BoundNode root, std::vector<PredicateColumn> columns) {
  ARROW_RETURN_NOT_OK(EnsureCompute());
  auto out = std::make_shared<BoundPredicate>();
  out->root_ = std::move(root);
  out->columns_ = std::move(columns);
  arrow::FieldVector fields;
  bool typed = true;
  for (const PredicateColumn& column : out->columns_) {
    typed = typed && column.type != nullptr;
    fields.push_back(arrow::field(
        column.path, column.type == nullptr ? arrow::null() : pq::ComparableType(column.type)));
  }
  out->schema_ = arrow::schema(std::move(fields));
  if (typed) {
    ARROW_ASSIGN_OR_RAISE(auto expression, ExpressionOf(out->root_, *out->schema_));
    auto bound = expression.Bind(*out->schema_);
    Status status = bound.status();
    if (status.ok()) {
      out->expression_ = *std::move(bound);
      status = TryOnNulls(out->expression_, *out->schema_);
    }
    if (!status.ok()) {
      return InvalidArgument("the predicate cannot be evaluated", "reason", status.message());
    }
  }
  ARROW_ASSIGN_OR_RAISE(auto judges, MakeJudges(out->root_, *out->schema_));
  out->bounds_schema_ = std::move(judges.schema);
  out->may_ = std::move(judges.may);
  out->must_ = std::move(judges.must);
  return out;
}

Status BoundPredicate::Filter(const arrow::RecordBatch& batch, int64_t first_row,
                              std::vector<RowRange>* rows) const {
  std::vector<arrow::Datum> columns;
  for (int i = 0; i < schema_->num_fields(); ++i) {
    ARROW_ASSIGN_OR_RAISE(auto column, ToComparable(batch.column(i), schema_->field(i)->type()));
    columns.emplace_back(std::move(column));
  }
  const cp::ExecBatch input(std::move(columns), batch.num_rows());
  ARROW_ASSIGN_OR_RAISE(arrow::Datum result, cp::ExecuteScalarExpression(expression_, input));
  if (result.is_scalar()) {
    const auto& scalar = static_cast<const arrow::BooleanScalar&>(*result.scalar());
    if (scalar.is_valid && scalar.value && batch.num_rows() > 0) {
      rows->push_back({first_row, first_row + batch.num_rows()});
    }
    return Status::OK();
  }
  const auto mask = result.make_array();
  AppendRuns(static_cast<const arrow::BooleanArray&>(*mask), first_row, rows);
  return Status::OK();
}

bool BoundPredicate::MayHold(const std::function<bool(const BoundAtom&)>& atom_may_hold) const {
  const std::function<bool(const BoundNode&)> may = [&](const BoundNode& node) {
    if (node.kind == Kind::kAtom) return atom_may_hold(node.atom);
    return node.kind == Kind::kAnd ? std::ranges::all_of(node.children, may)
                                   : std::ranges::any_of(node.children, may);
  };
  return may(root_);
}

}  // namespace grebe::scan
