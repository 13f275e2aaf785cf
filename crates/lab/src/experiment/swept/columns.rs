//! Sweeps as Parquet files: the columns of the CSV with types, so that shards can be joined without
//! guessing.

use super::Swept;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::sync::Arc;

impl Swept<'_> {
    /// Writes the rows of [`write_csv`](Swept::write_csv) as Parquet. Parameters are strings, seeds
    /// integers, measures doubles; a missing measure is null.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write_parquet(&self, out: impl Write + Send) -> io::Result<()> {
        self.write_columns(out).map_err(io::Error::other)
    }

    fn write_columns(&self, out: impl Write + Send) -> Result<()> {
        let mut writer = SerializedFileWriter::new(out, Arc::new(self.schema()?), Arc::new(properties()))?;
        let mut rows = writer.next_row_group()?;
        let points: Vec<&[String]> = self.sweep.points().collect();
        let parameters = |key: usize| {
            let of = |point: usize| ByteArray::from(points[point][key].as_str());
            self.samples.iter().map(|sample| of(sample.point)).collect::<Vec<_>>()
        };
        for key in 0..self.sweep.keys().count() {
            write::<ByteArrayType>(rows.next_column()?, &parameters(key), None)?;
        }
        let seeds: Vec<i64> = self.samples.iter().map(|sample| sample.seed.cast_signed()).collect();
        write::<Int64Type>(rows.next_column()?, &seeds, None)?;
        for measure in 0..self.sweep.measures().len() {
            let of_measure = || self.samples.iter().map(|sample| sample.values[measure]);
            let values: Vec<f64> = of_measure().flatten().collect();
            let is_there: Vec<i16> = of_measure().map(|value| i16::from(value.is_some())).collect();
            write::<DoubleType>(rows.next_column()?, &values, Some(&is_there))?;
        }
        rows.close()?;
        writer.close().map(|_| ())
    }

    fn schema(&self) -> Result<Type> {
        let column = |name: &str, physical, logical, repetition| {
            let column = Type::primitive_type_builder(name, physical).with_logical_type(logical);
            column.with_repetition(repetition).build().map(Arc::new)
        };
        let text = |name| column(name, Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED);
        let mut fields = self.sweep.keys().map(text).collect::<Result<Vec<_>>>()?;
        fields.push(column("seed", Physical::INT64, None, Repetition::REQUIRED)?);
        for measure in self.sweep.measures() {
            fields.push(column(measure, Physical::DOUBLE, None, Repetition::OPTIONAL)?);
        }
        Type::group_type_builder("plays").with_fields(fields).build()
    }
}

/// Writes the values of a column and which of them are present. The schema has as many columns.
fn write<T: DataType>(
    column: Option<SerializedColumnWriter<'_>>,
    values: &[T::T],
    is_there: Option<&[i16]>,
) -> Result<()> {
    let Some(mut column) = column else { return Ok(()) };
    column.typed::<T>().write_batch(values, is_there, None)?;
    column.close()
}

fn properties() -> WriterProperties {
    WriterProperties::builder().set_created_by("firstbyte lab sweep".to_owned()).build()
}

#[cfg(test)]
mod tests {
    use super::super::tests::swept_over_loss;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    #[test]
    fn a_file_has_the_rows_of_the_csv() {
        swept_over_loss(|swept| {
            let (mut csv, mut columns) = (Vec::new(), Vec::new());
            swept.write_csv(&mut csv).unwrap();
            swept.write_parquet(&mut columns).unwrap();
            let reader = SerializedFileReader::new(bytes::Bytes::from(columns)).unwrap();
            let mut rows = vec!["path.loss,seed,time".to_owned()];
            for row in reader.get_row_iter(None).unwrap() {
                let cells =
                    row.unwrap().get_column_iter().map(|(_, cell)| cell.to_string()).collect::<Vec<_>>();
                rows.push(cells.join(",").replace('"', ""));
            }
            assert_eq!(rows.join("\n") + "\n", String::from_utf8(csv).unwrap());
        });
    }
}
