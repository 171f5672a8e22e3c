//! The physical layout of an Arrow schema: how each column stores its values, and which nodes and
//! buffers of a batch belong to it (Arrow columnar format, "Physical Memory Layout" and
//! "Flattening").

use std::sync::Arc;

use arrow_ipc::{Field, Precision, Schema as FlatSchema, TimeUnit, Type};
use arrow_schema::DataType;
use thalweg_io::Fault;

/// How the values of a column are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Unsigned integers of this many bytes.
    Unsigned(usize),
    /// Signed integers of this many bytes.
    Signed(usize),
    /// `float` (4) or `double` (8).
    Float(usize),
    /// One bit per value.
    Bool,
    /// Values of this many bytes, which are not interpreted.
    Fixed(usize),
    /// UTF-8 text with offsets of this many bytes.
    Text(usize),
    /// Bytes with offsets of this many bytes.
    Binary(usize),
    /// Lists of values of the one child, with offsets of this many bytes.
    List(usize),
    /// Lists of pairs of the one child, with offsets of 4 bytes.
    Map,
    /// One value of each child.
    Struct,
    /// Lists of equally many values of the one child.
    FixedList,
    /// Milliseconds since 1970.
    Millis,
    /// No values.
    Null,
}

impl ColumnKind {
    /// Bytes of a value in the first buffer after the validity; `None` if that buffer holds bits or
    /// offsets, or does not exist.
    pub(super) const fn width(self) -> Option<usize> {
        match self {
            Self::Unsigned(bytes)
            | Self::Signed(bytes)
            | Self::Float(bytes)
            | Self::Fixed(bytes) => Some(bytes),
            Self::Millis => Some(8),
            _ => None,
        }
    }

    /// Bytes of an offset, for kinds that have them.
    pub(super) const fn offset_width(self) -> Option<usize> {
        match self {
            Self::Text(bytes) | Self::Binary(bytes) | Self::List(bytes) => Some(bytes),
            Self::Map => Some(4),
            _ => None,
        }
    }

    const fn buffers(self) -> usize {
        match self {
            Self::Null => 0,
            Self::Struct | Self::FixedList => 1,
            Self::Text(_) | Self::Binary(_) => 3,
            _ => 2,
        }
    }
}

/// A column, or a child of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSchema {
    /// The column's name.
    pub name: String,
    /// How values are stored. For a dictionary-encoded column: the values in the dictionary.
    pub kind: ColumnKind,
    /// The dictionary's id and the kind of the indices, if the column is dictionary-encoded.
    pub dictionary: Option<(i64, ColumnKind)>,
    /// The Arrow type of the values, if [`super::write`] can write a column of this type. For a
    /// dictionary-encoded column: the type of the values in the dictionary.
    pub arrow: Option<DataType>,
    /// The column's children. Those of a dictionary-encoded column lie in the dictionary.
    pub children: Vec<Self>,
    /// The index of the column's node in a batch.
    pub(super) node: usize,
    /// The index of the column's first buffer in a batch.
    pub(super) buffer: usize,
}

impl ColumnSchema {
    /// Whether the values are of this kind and do not lie in a dictionary.
    pub(super) fn is_plain(&self, kind: ColumnKind) -> bool {
        self.kind == kind && self.dictionary.is_none()
    }

    /// The child with this name.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The column as it is stored in the batches of its dictionary.
    pub(super) fn in_dictionary(&self) -> Self {
        let mut column = Self { dictionary: None, ..self.clone() };
        column.number(&mut ColumnCounts::default());
        column
    }

    /// Assigns the column and its children their nodes and buffers.
    fn number(&mut self, counts: &mut ColumnCounts) {
        (self.node, self.buffer) = (counts.nodes, counts.buffers);
        counts.nodes += 1;
        counts.buffers += self.dictionary.map_or(self.kind, |(_, index)| index).buffers();
        if self.dictionary.is_none() {
            for child in &mut self.children {
                child.number(counts);
            }
        }
    }
}

/// The numbers of nodes and buffers that are assigned so far.
#[derive(Default)]
struct ColumnCounts {
    nodes: usize,
    buffers: usize,
}

/// The columns and the metadata of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// The columns, in the order of the table.
    pub columns: Vec<ColumnSchema>,
    /// Names and values of the custom metadata.
    pub metadata: Vec<(String, String)>,
    /// The number of nodes of a batch.
    pub(super) nodes: usize,
    /// The number of buffers of a batch.
    pub(super) buffers: usize,
}

/// Levels of nesting at which a column is refused. POD5's own columns have three levels.
const DEEPEST: usize = 16;

impl Schema {
    /// Parses a schema.
    ///
    /// # Errors
    /// Big-endian schemas, and types that POD5 files do not have.
    pub fn parse(schema: FlatSchema<'_>) -> Result<Self, Fault> {
        if schema.endianness() != arrow_ipc::Endianness::Little {
            return Err(Fault::new(0, "a big-endian table", "little-endian, as POD5 files are"));
        }
        let fields = schema.fields().into_iter().flatten();
        let mut columns = fields.map(|field| column(field, 0)).collect::<Result<Vec<_>, _>>()?;
        let mut counts = ColumnCounts::default();
        for column in &mut columns {
            column.number(&mut counts);
        }
        let pairs = schema.custom_metadata().into_iter().flatten();
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let metadata = pairs.map(|pair| (text(pair.key()), text(pair.value()))).collect();
        Ok(Self { columns, metadata, nodes: counts.nodes, buffers: counts.buffers })
    }

    /// The top-level column with this name.
    pub fn column(&self, name: &str) -> Option<&ColumnSchema> {
        self.columns.iter().find(|column| column.name == name)
    }
}

fn column(field: Field<'_>, depth: usize) -> Result<ColumnSchema, Fault> {
    let name = field.name().unwrap_or_default();
    if depth == DEEPEST {
        return Err(Fault::new(
            0,
            format!("the column {name:?} {DEEPEST} deep"),
            "columns nested less deep",
        ));
    }
    let children = field.children().into_iter().flatten().map(|child| column(child, depth + 1));
    let children = children.collect::<Result<Vec<_>, _>>()?;
    let kind = kind(&field).ok_or_else(|| {
        let found = format!("the column {name:?} of Arrow type {:?}", field.type_type());
        Fault::new(0, found, "one of the types that POD5 files have")
    })?;
    let right = match kind {
        ColumnKind::List(_) | ColumnKind::FixedList => children.len() == 1,
        ColumnKind::Map => {
            let is_pair =
                |one: &ColumnSchema| one.kind == ColumnKind::Struct && one.children.len() == 2;
            matches!(children.as_slice(), [pair] if is_pair(pair))
        }
        ColumnKind::Struct => true,
        _ => children.is_empty(),
    };
    if !right {
        return Err(Fault::new(
            0,
            format!("{} children of the column {name:?}", children.len()),
            "as its type has",
        ));
    }
    let dictionary = match field.dictionary() {
        None => None,
        Some(encoding) => {
            let index = encoding.indexType().map_or(Some(ColumnKind::Signed(4)), integer);
            let index = index.ok_or_else(|| {
                Fault::new(
                    0,
                    format!("the column {name:?} with odd dictionary indices"),
                    "indices of 8 to 64 bits",
                )
            })?;
            Some((encoding.id(), index))
        }
    };
    let arrow = arrow(&field, kind, children.first());
    Ok(ColumnSchema {
        name: name.to_owned(),
        kind,
        dictionary,
        arrow,
        children,
        node: 0,
        buffer: 0,
    })
}

/// The Arrow type of a column of numbers, text, bytes, times, or lists of numbers. `None` for other
/// types.
fn arrow(field: &Field<'_>, kind: ColumnKind, child: Option<&ColumnSchema>) -> Option<DataType> {
    let unit = |unit| match unit {
        TimeUnit::SECOND => arrow_schema::TimeUnit::Second,
        TimeUnit::MILLISECOND => arrow_schema::TimeUnit::Millisecond,
        TimeUnit::MICROSECOND => arrow_schema::TimeUnit::Microsecond,
        _ => arrow_schema::TimeUnit::Nanosecond,
    };
    let item = || {
        let child = child.filter(|child| child.dictionary.is_none())?;
        let number = matches!(
            child.kind,
            ColumnKind::Unsigned(_) | ColumnKind::Signed(_) | ColumnKind::Float(_)
        );
        let kind = child.arrow.clone().filter(|_| number)?;
        Some(Arc::new(arrow_schema::Field::new(&child.name, kind, true)))
    };
    Some(match field.type_type() {
        Type::Int => match kind {
            ColumnKind::Unsigned(1) => DataType::UInt8,
            ColumnKind::Unsigned(2) => DataType::UInt16,
            ColumnKind::Unsigned(4) => DataType::UInt32,
            ColumnKind::Unsigned(_) => DataType::UInt64,
            ColumnKind::Signed(1) => DataType::Int8,
            ColumnKind::Signed(2) => DataType::Int16,
            ColumnKind::Signed(4) => DataType::Int32,
            _ => DataType::Int64,
        },
        Type::FloatingPoint if kind == ColumnKind::Float(4) => DataType::Float32,
        Type::FloatingPoint if kind == ColumnKind::Float(8) => DataType::Float64,
        Type::Bool => DataType::Boolean,
        Type::Utf8 => DataType::Utf8,
        Type::LargeUtf8 => DataType::LargeUtf8,
        Type::Binary => DataType::Binary,
        Type::LargeBinary => DataType::LargeBinary,
        Type::FixedSizeBinary => {
            DataType::FixedSizeBinary(field.type_as_fixed_size_binary()?.byteWidth())
        }
        Type::Timestamp => {
            let stamp = field.type_as_timestamp()?;
            DataType::Timestamp(unit(stamp.unit()), stamp.timezone().map(Arc::from))
        }
        Type::Duration => DataType::Duration(unit(field.type_as_duration()?.unit())),
        Type::Date if kind == ColumnKind::Fixed(4) => DataType::Date32,
        Type::Date => DataType::Date64,
        Type::List => DataType::List(item()?),
        Type::LargeList => DataType::LargeList(item()?),
        _ => return None,
    })
}

fn integer(int: arrow_ipc::Int<'_>) -> Option<ColumnKind> {
    let bytes = match int.bitWidth() {
        8 => 1,
        16 => 2,
        32 => 4,
        64 => 8,
        _ => return None,
    };
    Some(if int.is_signed() { ColumnKind::Signed(bytes) } else { ColumnKind::Unsigned(bytes) })
}

fn kind(field: &Field<'_>) -> Option<ColumnKind> {
    Some(match field.type_type() {
        Type::Null => ColumnKind::Null,
        Type::Int => integer(field.type_as_int()?)?,
        Type::FloatingPoint => match field.type_as_floating_point()?.precision() {
            Precision::SINGLE => ColumnKind::Float(4),
            Precision::DOUBLE => ColumnKind::Float(8),
            _ => ColumnKind::Fixed(2),
        },
        Type::Bool => ColumnKind::Bool,
        Type::Timestamp if field.type_as_timestamp()?.unit() == TimeUnit::MILLISECOND => {
            ColumnKind::Millis
        }
        Type::Timestamp | Type::Duration => ColumnKind::Fixed(8),
        Type::FixedSizeBinary => {
            ColumnKind::Fixed(usize::try_from(field.type_as_fixed_size_binary()?.byteWidth()).ok()?)
        }
        Type::Decimal => {
            ColumnKind::Fixed(usize::try_from(field.type_as_decimal()?.bitWidth()).ok()? / 8)
        }
        Type::Date => {
            ColumnKind::Fixed(if field.type_as_date()?.unit() == arrow_ipc::DateUnit::DAY {
                4
            } else {
                8
            })
        }
        Type::Time => {
            ColumnKind::Fixed(usize::try_from(field.type_as_time()?.bitWidth()).ok()? / 8)
        }
        Type::Utf8 => ColumnKind::Text(4),
        Type::LargeUtf8 => ColumnKind::Text(8),
        Type::Binary => ColumnKind::Binary(4),
        Type::LargeBinary => ColumnKind::Binary(8),
        Type::List => ColumnKind::List(4),
        Type::LargeList => ColumnKind::List(8),
        Type::FixedSizeList => ColumnKind::FixedList,
        Type::Map => ColumnKind::Map,
        Type::Struct_ => ColumnKind::Struct,
        _ => return None,
    })
}
